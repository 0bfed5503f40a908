"""CSV tables of the catalogue."""

from __future__ import annotations

import csv
import importlib.resources
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from roofcast.data.catalog.sheet_units import fields_in_si, with_peaks
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.specs import AcceleratorSpec, ModelSpec, Offer, Spec

SpecT = TypeVar("SpecT", bound=Spec)

_PACKAGE: Final = "roofcast.data.catalog"


def load_models() -> tuple[ModelSpec, ...]:
    """Return the models of ``models.csv``.

    Raises
    ------
    SchemaError
        If a row is no valid spec; names file, line and field.
    """
    return tuple(_specs("models.csv", ModelSpec, lambda fields: fields))


def load_accelerators() -> tuple[AcceleratorSpec, ...]:
    """Return the accelerators of ``accelerators.csv``.

    Raises
    ------
    SchemaError
        If a row is no valid spec; names file, line and field.
    """
    return tuple(_specs("accelerators.csv", AcceleratorSpec, with_peaks))


def load_offers() -> tuple[Offer, ...]:
    """Return the offers of ``offers.csv``.

    Raises
    ------
    SchemaError
        If a row is no valid offer; names file, line and field.
    """
    return tuple(_specs("offers.csv", Offer, lambda fields: fields))


def load_aliases(file: str) -> dict[str, str]:
    """Return ids by alias.

    Raises
    ------
    SchemaError
        If an alias occurs twice.
    """
    aliases: dict[str, str] = {}
    for line, row in _rows(file):
        if row["alias"] in aliases:
            raise SchemaError("alias", f"{row['alias']!r} occurs twice", file, line)
        aliases[row["alias"]] = row["id"]
    return aliases


def load_alias_precisions() -> dict[str, str]:
    """Return weight precisions by model alias, for the aliases of quantised copies."""
    rows = (row for _, row in _rows("model_aliases.csv"))
    return {row["alias"]: row["weight_precision"] for row in rows if "weight_precision" in row}


def _rows(file: str) -> Iterator[tuple[int, dict[str, str]]]:
    text = importlib.resources.files(_PACKAGE).joinpath(file).read_text(encoding="utf-8")
    for line, row in enumerate(csv.DictReader(text.splitlines()), start=2):
        yield line, {name: value for name, value in row.items() if value}


def _specs(file: str, kind: type[SpecT], prepare: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[SpecT]:
    for line, row in _rows(file):
        try:
            yield kind.parse(prepare(fields_in_si(row)))
        except InputError as error:
            raise SchemaError(error.field, error.problem, file, line) from error
