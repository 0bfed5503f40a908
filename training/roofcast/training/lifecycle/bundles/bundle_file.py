"""Codec of bundle files: a JSON tree of registered classes beside one block of numeric arrays, in a ZIP archive.

Reading a file runs no code from it. Class names are looked up in a closed tuple, never imported; arrays have one of
`DTYPES` and are views of the block; strings, numbers and containers come from JSON. Members are read by name, never
extracted. A member's declared size is checked first, and decompression stops there, whatever the member holds.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import BaseModel

from roofcast.data.errors import InputError

FORMAT: Final = 1
"""Version of the format; a file of a newer one is refused."""

TREE, ARRAYS = "tree.json", "arrays.bin"
"""Members of the archive."""

MAX_BYTE: Final = {TREE: 64 * 2**20, ARRAYS: 512 * 2**20}
"""Largest uncompressed size of each member."""

COMPRESSIONS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compressions whose decoder stops at a given size; that of bzip2 does not."""

DTYPES: Final = ("<f8", "<f4", "<i8", "<i4", "<i2", "<i1", "|i1", "<u8", "|u1", "|b1")

_ALIGNMENT: Final = 64
_KIND: Final = "$"
"""Key of a JSON object that holds its kind."""


Classes = Mapping[type, Collection[str]]
"""Registered classes, each with its stored attributes; see `stored_fields`."""


def stored_fields(cls: type[Any]) -> tuple[str, ...]:
    """Return the fields of a dataclass that its constructor takes, or those of a Pydantic model."""
    if issubclass(cls, BaseModel):
        return tuple(cls.model_fields)
    return tuple(f.name for f in dataclasses.fields(cls) if f.init)


def write_object(path: Path, value: Any, classes: Classes, about: Mapping[str, str]) -> None:
    """Write an object; the same object gives the same bytes.

    `value`: built from registered classes, containers, numeric arrays and tables. Unregistered attributes are not
    stored. Raises `TypeError` if the object holds another type.
    """
    writer = _Writer(classes)
    tree = {"format": FORMAT, "about": dict(about), "value": writer.encode(value)}
    members = {TREE: json.dumps(tree, separators=(",", ":")).encode(), ARRAYS: writer.block.getvalue()}
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, content in members.items():
                archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, compresslevel=9)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class BundleFile:
    """Content of a file before decoding."""

    name: str
    about: dict[str, str]
    tree: Any
    block: bytes

    @classmethod
    def parse(cls, content: bytes, name: str) -> BundleFile:
        """Return the content of a file.

        Raises `InputError` if the file is damaged, too large, of a newer format, or no bundle.
        """
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                _check_members(archive, name)
                tree = json.loads(_read_member(archive, TREE))
                if tree["format"] > FORMAT:
                    problem = f"{name} has format {tree['format']}, this version reads {FORMAT}; upgrade roofcast"
                    raise InputError("bundle", problem)
                about = {str(key): str(value) for key, value in tree["about"].items()}
                return cls(name, about, tree["value"], _read_member(archive, ARRAYS))
        except InputError:
            raise
        except Exception as error:  # the parsers of a damaged file raise many kinds
            raise _unreadable(name, error) from error

    def decode(self, classes: Classes) -> Any:
        """Return the decoded object.

        Raises `InputError` if the tree names a class that is not registered, or does not fit its class.
        """
        try:
            return _Reader(self.block, {cls.__name__: (cls, names) for cls, names in classes.items()}).decode(
                self.tree
            )
        except Exception as error:  # constructors validate their arguments and raise many kinds
            raise _unreadable(self.name, error) from error


def _check_members(archive: zipfile.ZipFile, name: str) -> None:
    members = archive.infolist()
    if sorted(member.filename for member in members) != sorted(MAX_BYTE):
        raise InputError("bundle", f"{name} is no bundle: it must hold {TREE} and {ARRAYS}, and nothing else")
    for member in members:
        if member.compress_type not in COMPRESSIONS:
            problem = f"{name} is no bundle: {member.filename} must be stored or deflated"
            raise InputError("bundle", f"{problem}, got compression {member.compress_type}")
        limit = MAX_BYTE[member.filename]
        if member.file_size > limit:
            problem = f"{name} holds {member.file_size:,} bytes of {member.filename}; at most {limit:,} are read"
            raise InputError("bundle", problem)


def _read_member(archive: zipfile.ZipFile, member: str) -> bytes:
    # at most one byte more than the declared size is decompressed
    n_byte = archive.getinfo(member).file_size
    with archive.open(member) as stream:
        content = stream.read(n_byte + 1)
    if len(content) != n_byte:
        raise ValueError(f"{member} must hold {n_byte:,} bytes as declared, got {len(content):,}")
    return content


def _unreadable(name: str, error: Exception) -> InputError:
    return InputError("bundle", f"{name} cannot be read ({type(error).__name__}: {error}); retrain")


@dataclass(slots=True)
class _Writer:
    classes: Classes
    block: io.BytesIO = field(default_factory=io.BytesIO)
    offsets: dict[bytes, int] = field(default_factory=dict)

    def encode(self, value: Any) -> Any:  # noqa: PLR0911  (a case for each kind)
        match value:
            case None | bool() | int() | float() | str():
                return float(value) if isinstance(value, float) else value
            case np.bool_() | np.integer() | np.floating():
                return value.item()
            case list():
                return [self.encode(item) for item in value]
            case tuple():
                return {_KIND: "tuple", "items": [self.encode(item) for item in value]}
            case dict():
                if not all(isinstance(name, str) and name != _KIND for name in value):
                    raise TypeError(f"names must be text, got {list(value)!r}")
                return {name: self.encode(item) for name, item in value.items()}
            case bytes() | bytearray():
                return {_KIND: "bytes", **self._store(bytes(value)), "size": len(value)}
            case np.ndarray():
                return self._encode_array(value)
            case pd.DataFrame():
                return self._encode_table(value)
        return self._encode_object(value)

    def _encode_object(self, value: Any) -> dict[str, Any]:
        if type(value) not in self.classes:
            raise TypeError(f"a {type(value).__qualname__} cannot be stored; register the class")
        fields = {name: getattr(value, name) for name in self.classes[type(value)] if hasattr(value, name)}
        return {_KIND: type(value).__name__, **{name: self.encode(item) for name, item in fields.items()}}

    def _encode_array(self, array: npt.NDArray[Any]) -> dict[str, Any]:
        if array.dtype.str not in DTYPES:
            raise TypeError(f"an array of {array.dtype} cannot be stored")
        content = np.ascontiguousarray(array).tobytes()
        return {_KIND: "array", "dtype": array.dtype.str, "shape": list(array.shape), **self._store(content)}

    def _encode_table(self, table: pd.DataFrame) -> dict[str, Any]:
        index = None if isinstance(table.index, pd.RangeIndex) else [str(name) for name in table.index]
        columns = {str(name): self._encode_column(column) for name, column in table.items()}
        return {_KIND: "table", "n_row": len(table), "index": index, "columns": columns}

    def _encode_column(self, column: pd.Series) -> dict[str, Any]:
        if isinstance(column.dtype, np.dtype) and column.dtype != object:
            return self._encode_array(column.to_numpy())
        codes, values = pd.factorize(column)
        if not all(isinstance(value, str) for value in values):
            raise TypeError(f"column {column.name!r} must hold numbers or text")
        return {_KIND: "text", "codes": self._encode_array(codes.astype(np.int32)), "values": [*values]}

    def _store(self, content: bytes) -> dict[str, int]:
        if content not in self.offsets:
            self.block.write(bytes(-self.block.tell() % _ALIGNMENT))
            self.offsets[content] = self.block.tell()
            self.block.write(content)
        return {"at": self.offsets[content]}


@dataclass(frozen=True, slots=True)
class _Reader:
    block: bytes
    classes: dict[str, tuple[type, Collection[str]]]

    def decode(self, node: Any) -> Any:  # noqa: PLR0911  (a case for each kind)
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        kind = node.get(_KIND)
        fields = {name: item for name, item in node.items() if name != _KIND}
        match kind:
            case None:
                return {name: self.decode(item) for name, item in fields.items()}
            case "tuple":
                return tuple(self.decode(item) for item in fields["items"])
            case "bytes":
                return bytes(self._view("|u1", (fields["size"],), fields["at"]))
            case "array":
                return self._view(fields["dtype"], tuple(fields["shape"]), fields["at"])
            case "table":
                columns = {name: self._decode_column(item) for name, item in fields["columns"].items()}
                return pd.DataFrame(columns, index=fields["index"] or pd.RangeIndex(fields["n_row"]))
        return self._build(kind, {name: self.decode(item) for name, item in fields.items()})

    def _build(self, kind: Any, fields: dict[str, Any]) -> Any:
        if kind not in self.classes:
            raise ValueError(f"{kind!r} is no registered class")
        cls, names = self.classes[kind]
        is_value = dataclasses.is_dataclass(cls) or issubclass(cls, BaseModel)
        if not fields.keys() <= set(names) or (is_value and len(fields) < len(names)):
            raise ValueError(f"the stored attributes of {kind} are not those of this version")
        if is_value:
            return cls(**fields)
        value: Any = object.__new__(cls)
        vars(value).update(fields)
        return value

    def _decode_column(self, node: dict[str, Any]) -> Any:
        if node[_KIND] == "array":
            return self.decode(node)
        values = np.array([*node["values"], None], dtype=object)
        return pd.array(values[self.decode(node["codes"])], dtype="str")

    def _view(self, dtype: str, shape: tuple[int, ...], at: int) -> npt.NDArray[Any]:
        if dtype not in DTYPES:
            raise ValueError(f"{dtype!r} is no type of stored arrays")
        if min((at, *shape)) < 0 or at + math.prod(shape) * np.dtype(dtype).itemsize > len(self.block):
            raise ValueError(f"an array of shape {shape} lies outside the block")
        return np.frombuffer(self.block, dtype, math.prod(shape), at).reshape(shape)
