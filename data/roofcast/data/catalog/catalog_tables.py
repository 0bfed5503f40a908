"""CSV tables of specs, in the units of data sheets."""

import csv
from collections.abc import Callable, Iterator
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

from roofcast.data.catalog.sheet_units import fields_in_si
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.specs import Spec

SpecT = TypeVar("SpecT", bound=Spec)


def read_specs(
    file: Traversable, kind: type[SpecT], prepare: Callable[[dict[str, Any]], dict[str, Any]] = dict
) -> Iterator[SpecT]:
    """Yield the spec of each row of a table.

    Raises `SchemaError` if a row is no valid spec; names file, line and field.
    """
    for line, row in _rows(file):
        try:
            yield kind.parse(prepare(fields_in_si(row)))
        except InputError as error:
            raise SchemaError(error.field, error.problem, file.name, line) from error


def read_aliases(file: Traversable, column: str = "id") -> dict[str, str]:
    """Return the cells of a column by alias, without the blank ones.

    Raises `SchemaError` if an alias occurs twice.
    """
    aliases: dict[str, str] = {}
    for line, row in _rows(file):
        if row["alias"] in aliases:
            raise SchemaError("alias", f"{row['alias']!r} occurs twice", file.name, line)
        aliases[row["alias"]] = row.get(column, "")
    return {alias: cell for alias, cell in aliases.items() if cell}


def read_rows(file: Traversable) -> list[dict[str, str]]:
    """Return the rows of a table, blank cells too."""
    return [*csv.DictReader(file.read_text(encoding="utf-8").splitlines())]


def _rows(file: Traversable) -> Iterator[tuple[int, dict[str, str]]]:
    for line, row in enumerate(read_rows(file), start=2):
        yield line, {name: value for name, value in row.items() if value}
