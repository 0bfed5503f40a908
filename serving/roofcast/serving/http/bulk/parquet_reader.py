"""Reader of untrusted Parquet; footer and pages are checked before any row is read.

A few bytes may unpack to terabytes. The pages count, not what the footer says of them.
"""

# ruff: noqa: PLC0415  (importing pyarrow takes a quarter of a second and 40 MB; requests without Parquet skip it)

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

from roofcast.data.errors import InputError
from roofcast.data.measurements.column_names import LONG_NAMES, column_cure
from roofcast.data.measurements.schema import INPUT_COLUMNS
from roofcast.serving.http.bulk.chunks import MAX_TEXT, N_ROW, Chunk
from roofcast.serving.predict.question_rows import REQUIRED_COLUMNS, ROW_NAMES
from roofcast.serving.predict.row_checks import table_columns

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_PAGE: Final = 100_000
"""Most pages of a file; writers make one of a megabyte or 20,000 rows."""

DELTA_ENCODINGS: Final = {6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY"}
"""Encodings whose values may take more memory than their pages: counts and texts repeat."""

_MAX_DEPTH: Final = 4
_DATA, _DICTIONARY, _DATA_V2 = 5, 7, 8


class DamagedPageError(Exception):
    """Pages that cannot be read."""


@dataclass(frozen=True, slots=True)
class Page:
    """Size of an unpacked page, number of its rows (0 of a dictionary), and number of its encoding."""

    n_byte: int
    n_row: int
    encoding: int


def read_pages(body: bytes, start: int, end: int) -> Iterator[Page]:
    """Yield the pages of a column chunk, from one offset to another; values are not unpacked.

    Raises `DamagedPageError` if they cannot be read.

    References
    ----------
    Apache Parquet, parquet.thrift, `PageHeader`; Apache Thrift, compact protocol.
    """
    if not 0 <= start <= end <= len(body):
        raise DamagedPageError("a column lies outside the file")
    while start < end:
        header = _Header(body, start)
        fields = header.struct()
        n_byte, n_packed = fields.get(2, -1), fields.get(3, -1)
        if not (isinstance(n_byte, int) and isinstance(n_packed, int)) or n_byte < 0 or n_packed < 0:
            raise DamagedPageError("a page has no size")
        start = header.position + n_packed
        parts = [fields.get(number, {}) for number in (_DATA, _DATA_V2, _DICTIONARY)]
        data, second, dictionary = (part if isinstance(part, dict) else {} for part in parts)
        n_row = max(data.get(1, 0), second.get(1, 0))
        yield Page(n_byte, n_row, max(data.get(2, 0), second.get(4, 0), dictionary.get(2, 0)))


class _Header:
    def __init__(self, body: bytes, position: int) -> None:
        self._body = body
        self.position = position

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > _MAX_DEPTH:
            raise DamagedPageError("a page's header is nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case 1 | 2:
                return kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 8:
                n_byte = self._varint()
                self.position += n_byte
                return None
            case 12:
                return self.struct(depth + 1)
        raise DamagedPageError("a page's header has fields of unknown types")

    def _byte(self) -> int:
        if self.position >= len(self._body):
            raise DamagedPageError("a page ends early")
        self.position += 1
        return self._body[self.position - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise DamagedPageError("a page's header has a number of excessive length")

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


MAX_UNPACKED_BYTE: Final = 256_000_000
"""Largest size of all pages of a file without compression; a text in a dictionary counts once."""

NAMES_ONLY: Final = "; send a model with its configuration as NDJSON"
"""Cure for configurations in Parquet: repeated in each row, they would be most of the file."""

_MAX_LIST: Final = 100_000
"""Most elements of a list in the footer."""

_KINDS: Final = {name: INPUT_COLUMNS[LONG_NAMES.get(name, name)].kind for name in ROW_NAMES}
_PLURALS: Final = {"float": "numbers", "bool": "truth values", "str": "texts"}


def read_parquet(body: IO[bytes], max_row: int, max_byte: int = MAX_UNPACKED_BYTE) -> Iterator[Chunk]:
    """Yield the rows of a file in chunks, after all of them have been validated.

    Raises `InputError` if it is no Parquet file of input columns, truncated, damaged, or too large when unpacked.
    """
    import pyarrow as pa

    content = body.read()
    source = pa.BufferReader(content)
    try:
        coded = _check_footer(_open(source, []), max_row)
        _check_pages(_open(source, []).metadata, content, max_byte)
        n_row = sum(_check_batch(batch) for batch in _batches(source, coded))
    except MemoryError:
        raise InputError("body", "is too large when unpacked; send it in parts") from None
    except (pa.ArrowException, OSError, KeyError, DamagedPageError) as error:
        reason = str(error).partition("\n")[0][:300]
        raise InputError("body", f"is no readable Parquet file: {reason}") from error
    if n_row != _open(source, []).metadata.num_rows:
        raise InputError("body", f"has {n_row} rows, but declares another number")
    start = 1
    for batch in _batches(source, coded):
        plain = pa.RecordBatch.from_arrays([_decode(column) for column in batch.columns], names=batch.schema.names)
        columns = table_columns(batch.to_pandas().astype(object))
        yield Chunk(columns, "row", range(start, start + batch.num_rows), batch=plain)
        start += batch.num_rows


def _open(source: pa.NativeFile, coded: list[str]) -> pq.ParquetFile:
    import pyarrow.parquet as pq

    source.seek(0)
    return pq.ParquetFile(source, read_dictionary=coded, thrift_container_size_limit=_MAX_LIST)


def _batches(source: pa.NativeFile, coded: list[str]) -> Iterator[pa.RecordBatch]:
    yield from _open(source, coded).iter_batches(batch_size=N_ROW, use_threads=False)


def _check_footer(file: pq.ParquetFile, max_row: int) -> list[str]:
    metadata, schema = file.metadata, file.schema_arrow
    if not metadata.num_rows:
        raise InputError("body", "there is no row; send at least one")
    if not 0 < metadata.num_rows <= max_row:
        raise InputError("body", f"must be at most {max_row} rows, got {metadata.num_rows}; send them in parts")
    _check_columns(schema)
    return [name for name in schema.names if _KINDS[name] == "str"]


def _check_pages(metadata: pq.FileMetaData, content: bytes, max_byte: int) -> None:
    n_byte = n_page = 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for column in map(group.column, range(group.num_columns)):
            dictionary = column.dictionary_page_offset if column.has_dictionary_page else None
            start = min(column.data_page_offset, dictionary or column.data_page_offset)
            n_row = 0
            for page in read_pages(content, start, start + column.total_compressed_size):
                n_byte, n_page, n_row = n_byte + page.n_byte, n_page + 1, n_row + page.n_row
                if page.encoding in DELTA_ENCODINGS:
                    encoding = DELTA_ENCODINGS[page.encoding]
                    raise InputError(column.path_in_schema, f"is encoded as {encoding}; write the file without it")
                if n_byte > max_byte or n_page > MAX_PAGE:
                    raise InputError("body", "is too large when unpacked; send it in parts")
                if n_row > metadata.num_rows:
                    raise InputError(column.path_in_schema, f"has more than the {metadata.num_rows} rows of the file")


def _check_columns(schema: pa.Schema) -> None:
    from pyarrow import types

    for name in schema.names:
        if schema.names.count(name) > 1:
            raise InputError(name, "is given twice as a column; keep one")
        if name not in _KINDS:
            cure = NAMES_ONLY if "config" in name else ""
            raise InputError(name, f"is not an input column; {column_cure(name, _KINDS)}{cure}")
    for name in REQUIRED_COLUMNS:
        if name not in schema.names:
            raise InputError(name, "is missing; it must be a column of the input")
    for field in schema:
        if not (_has_right_type(field) or types.is_primitive(field.type)):
            raise _wrong_type(field)


def _has_right_type(field: pa.Field) -> bool:
    from pyarrow import types

    kind, wanted = field.type, _KINDS[field.name]
    if types.is_null(kind):
        return True
    if wanted == "str":
        value = kind.value_type if types.is_dictionary(kind) else kind
        return bool(types.is_string(value) or types.is_large_string(value) or types.is_null(value))
    return bool(types.is_boolean(kind) if wanted == "bool" else types.is_integer(kind) or types.is_floating(kind))


def _wrong_type(field: pa.Field) -> InputError:
    expected, cure = _PLURALS[_KINDS[field.name]], NAMES_ONLY if field.name == "model" else ""
    return InputError(field.name, f"must be a column of {expected}, got {str(field.type)[:100]}{cure}")


def _check_batch(batch: pa.RecordBatch) -> int:
    from pyarrow import compute, types

    batch.validate(full=True)
    for field, column in zip(batch.schema, batch.columns, strict=True):
        name = field.name
        if not _has_right_type(field) and not compute.all(compute.is_null(column, nan_is_null=True)).as_py():
            raise _wrong_type(field)
        if types.is_dictionary(column.type):
            cure = NAMES_ONLY if name == "model" else ""
            longest = compute.max(compute.binary_length(column.dictionary)).as_py() or 0
            if longest > MAX_TEXT:
                raise InputError(name, f"must be at most {MAX_TEXT} bytes long, got {longest}{cure}")
            if name == "model" and compute.any(compute.starts_with(column.dictionary, "{")).as_py():
                raise InputError(name, f"must be a name, got JSON{NAMES_ONLY}")
    return int(batch.num_rows)


def _decode(column: pa.Array) -> pa.Array:
    from pyarrow import types

    return column.dictionary_decode() if types.is_dictionary(column.type) else column
