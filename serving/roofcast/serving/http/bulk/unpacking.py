"""Untrusted Parquet, unpacked in a separate process: ``python -m roofcast.serving.http.bulk.unpacking``.

A few bytes of Parquet may stand for terabytes, and a footer that is damaged in the right place ends the process that
reads it. So neither happens where others are served. The file comes on standard input; what is in it goes to standard
output as an Arrow stream, texts as dictionaries so that one that is long counts once; what is wrong with it goes to
standard error as JSON. Nothing but pyarrow is imported.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import compute, types

from roofcast.serving.http.bulk import WRONG_FILE

_MAX_LIST: Final = 100_000

NAMES_ALONE: Final = "; a model that comes with its configuration goes as NDJSON"
"""Parquet holds names of models: a configuration written out for each row would be most of the file."""


class Limits(NamedTuple):
    """What a file may be.

    Parameters
    ----------
    texts, numbers
        Columns that there may be.
    required
        Columns that there must be.
    n_row, chunk
        Most rows of all, and of one batch of the stream.
    text
        Longest text, in bytes.
    memory_byte, unpacked_byte, cpu_s
        Most that this process may take, write and work.
    """

    texts: list[str]
    numbers: list[str]
    required: list[str]
    n_row: int
    chunk: int
    text: int
    memory_byte: int
    unpacked_byte: int
    cpu_s: int


class WrongFileError(Exception):
    """The file cannot be taken; says where and why."""


def unpack(limits: Limits) -> None:
    """Write what standard input holds to standard output, once all of it has been read without a fault.

    Raises
    ------
    WrongFileError
        If it is not what the limits say.
    """
    source = pa.PythonFile(sys.stdin.buffer, "r")
    opened = _open(source, [])
    schema = opened.schema_arrow
    n_row = opened.metadata.num_rows
    if not n_row:
        raise WrongFileError("body", "there is no row")
    if not 0 < n_row <= limits.n_row:
        raise WrongFileError("body", f"must be at most {limits.n_row} rows, got {n_row}; send them in parts")
    _check_columns(schema, limits)
    coded = [name for name in schema.names if name in limits.texts]
    n_found = sum(_checked(batch, limits).num_rows for batch in _batches(source, coded, limits))
    if n_found != n_row:
        raise WrongFileError("body", f"says that it has {n_row} rows, and has {n_found}")
    writer = None
    for batch in _batches(source, coded, limits):
        plain = batch.replace_schema_metadata(None)
        writer = writer or pa.ipc.new_stream(pa.PythonFile(sys.stdout.buffer, "w"), plain.schema)
        writer.write_batch(plain)
    if writer is not None:
        writer.close()


def _open(source: pa.NativeFile, coded: list[str]) -> pq.ParquetFile:
    source.seek(0)
    return pq.ParquetFile(source, read_dictionary=coded, thrift_container_size_limit=_MAX_LIST)


def _batches(source: pa.NativeFile, coded: list[str], limits: Limits) -> Iterator[pa.RecordBatch]:
    yield from _open(source, coded).iter_batches(batch_size=limits.chunk, use_threads=False)


def _check_columns(schema: pa.Schema, limits: Limits) -> None:
    known = [*limits.texts, *limits.numbers]
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise WrongFileError(name, "is given twice as a column; keep one")
        if name not in known:
            cure = NAMES_ALONE if "config" in name else ""
            raise WrongFileError(name, f"is not a column of questions; they are {', '.join(known)}{cure}")
    for name in limits.required:
        if name not in schema.names:
            raise WrongFileError(name, "must be a column of the questions")
    for field in schema:
        if not (_is_wanted(field, limits) or types.is_primitive(field.type)):
            raise _wrong_type(field, limits)


def _is_wanted(field: pa.Field, limits: Limits) -> bool:
    return _is_number(field.type) if field.name in limits.numbers else _is_text(field.type)


def _wrong_type(field: pa.Field, limits: Limits) -> WrongFileError:
    wanted = "numbers" if field.name in limits.numbers else "texts"
    cure = NAMES_ALONE if field.name == "model" else ""
    return WrongFileError(field.name, f"must be a column of {wanted}, got {str(field.type)[:100]}{cure}")


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind))


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(value) or types.is_large_string(value) or types.is_null(value))


def _checked(batch: pa.RecordBatch, limits: Limits) -> pa.RecordBatch:
    """Return a batch that is sound, none of whose texts is too long to be written out for each row.

    A column in which nothing is given may be of another type: pandas has floats where no text is.
    """
    batch.validate(full=True)
    for field, column in zip(batch.schema, batch.columns, strict=True):
        name = field.name
        if not _is_wanted(field, limits) and not compute.all(compute.is_null(column, nan_is_null=True)).as_py():
            raise _wrong_type(field, limits)
        if types.is_dictionary(column.type):
            longest = compute.max(compute.binary_length(column.dictionary)).as_py() or 0
            if longest > limits.text:
                cure = NAMES_ALONE if name == "model" else ""
                raise WrongFileError(name, f"must be at most {limits.text} bytes long, got {longest}{cure}")
            if name == "model" and compute.any(compute.starts_with(column.dictionary, "{")).as_py():
                raise WrongFileError(name, f"must be a name, got JSON{NAMES_ALONE}")
    return batch


def _main(limits: Limits) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_byte, limits.memory_byte))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.unpacked_byte, limits.unpacked_byte))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        unpack(limits)
    except WrongFileError as error:
        field, problem = error.args
    except MemoryError:
        field, problem = "body", "is too large when it is unpacked"
    except (pa.ArrowException, OSError, KeyError) as error:
        field, problem = "body", f"is no Parquet that can be read: {str(error).partition(chr(10))[0][:300]}"
    else:
        return 0
    sys.stderr.write(f"\n{json.dumps([field, problem])}")
    return WRONG_FILE


if __name__ == "__main__":
    sys.exit(_main(Limits(**json.loads(sys.argv[1]))))
