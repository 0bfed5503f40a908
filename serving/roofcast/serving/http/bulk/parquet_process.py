"""Validation of untrusted Parquet in a process of its own: ``python -m roofcast.serving.http.bulk.parquet_process``.

A few bytes of Parquet may unpack to terabytes, and a damaged footer may crash the reader, so neither happens in the
server process. The file is read from standard input; its rows are written to standard output as an Arrow stream, with
texts as dictionaries so that a repeated text counts once; an error is written to standard error as JSON. Only pyarrow
is imported, and names of columns.
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

from roofcast.data.measurements.column_names import column_cure
from roofcast.serving.http.bulk import WRONG_FILE

_MAX_LIST: Final = 100_000

NAMES_ONLY: Final = "; send a model with its configuration as NDJSON"
"""Cure for configurations in Parquet: repeated in each row, they would be most of the file."""


class Limits(NamedTuple):
    """Limits on a file and on this process.

    Parameters
    ----------
    texts, numbers, flags
        Columns that are allowed.
    required
        Columns that are required.
    n_row, chunk
        Most rows in all, and in one batch of the stream.
    text
        Longest text, in bytes.
    memory_byte, unpacked_byte, cpu_s
        Most memory, output and processor time of this process.
    """

    texts: list[str]
    numbers: list[str]
    flags: list[str]
    required: list[str]
    n_row: int
    chunk: int
    text: int
    memory_byte: int
    unpacked_byte: int
    cpu_s: int


class WrongFileError(Exception):
    """The file breaks a limit; its arguments are the field and the message."""


def unpack(limits: Limits) -> None:
    """Write the rows of standard input to standard output, after all of them have been validated.

    The file is read from memory: threads of pyarrow read ahead, and one that reads from a Python file while the
    interpreter ends aborts the process.

    Raises
    ------
    WrongFileError
        If the file breaks the limits.
    """
    source = pa.BufferReader(sys.stdin.buffer.read())
    opened = _open(source, [])
    schema = opened.schema_arrow
    n_row = opened.metadata.num_rows
    if not n_row:
        raise WrongFileError("body", "there is no row; send at least one")
    if not 0 < n_row <= limits.n_row:
        raise WrongFileError("body", f"must be at most {limits.n_row} rows, got {n_row}; send them in parts")
    _check_columns(schema, limits)
    coded = [name for name in schema.names if name in limits.texts]
    n_valid = sum(_validated(batch, limits).num_rows for batch in _batches(source, coded, limits))
    if n_valid != n_row:
        raise WrongFileError("body", f"declares {n_row} rows, but has {n_valid}")
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
    known = [*limits.texts, *limits.numbers, *limits.flags]
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise WrongFileError(name, "is given twice as a column; keep one")
        if name not in known:
            cure = NAMES_ONLY if "config" in name else ""
            raise WrongFileError(name, f"is not an input column; {column_cure(name, known)}{cure}")
    for name in limits.required:
        if name not in schema.names:
            raise WrongFileError(name, "is missing; it must be a column of the input")
    for field in schema:
        if not (_has_right_type(field, limits) or types.is_primitive(field.type)):
            raise _wrong_type(field, limits)


def _has_right_type(field: pa.Field, limits: Limits) -> bool:
    if field.name in limits.flags:
        return bool(types.is_boolean(field.type) or types.is_null(field.type))
    return _is_number(field.type) if field.name in limits.numbers else _is_text(field.type)


def _wrong_type(field: pa.Field, limits: Limits) -> WrongFileError:
    kinds = {"numbers": limits.numbers, "truth values": limits.flags, "texts": limits.texts}
    expected = next(kind for kind, names in kinds.items() if field.name in names)
    cure = NAMES_ONLY if field.name == "model" else ""
    return WrongFileError(field.name, f"must be a column of {expected}, got {str(field.type)[:100]}{cure}")


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind))


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(value) or types.is_large_string(value) or types.is_null(value))


def _validated(batch: pa.RecordBatch, limits: Limits) -> pa.RecordBatch:
    """Return the batch if it is intact and its texts are short enough to be repeated in each row.

    An empty column may be of another type: pandas writes floats for a column without texts.
    """
    batch.validate(full=True)
    for field, column in zip(batch.schema, batch.columns, strict=True):
        name = field.name
        if not _has_right_type(field, limits) and not compute.all(compute.is_null(column, nan_is_null=True)).as_py():
            raise _wrong_type(field, limits)
        if types.is_dictionary(column.type):
            longest = compute.max(compute.binary_length(column.dictionary)).as_py() or 0
            if longest > limits.text:
                cure = NAMES_ONLY if name == "model" else ""
                raise WrongFileError(name, f"must be at most {limits.text} bytes long, got {longest}{cure}")
            if name == "model" and compute.any(compute.starts_with(column.dictionary, "{")).as_py():
                raise WrongFileError(name, f"must be a name, got JSON{NAMES_ONLY}")
    return batch


def _main(limits: Limits) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_byte, limits.memory_byte))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.unpacked_byte, limits.unpacked_byte))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        unpack(limits)
    except WrongFileError as error:
        field, message = error.args
    except MemoryError:
        field, message = "body", "is too large when unpacked; send it in parts"
    except (pa.ArrowException, OSError, KeyError) as error:
        field, message = "body", f"is no readable Parquet file: {str(error).partition(chr(10))[0][:300]}"
    else:
        return 0
    sys.stderr.write(f"\n{json.dumps([field, message])}")
    return WRONG_FILE


if __name__ == "__main__":
    sys.exit(_main(Limits(**json.loads(sys.argv[1]))))
