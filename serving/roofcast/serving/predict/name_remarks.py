"""Remarks of an answer: what names that are not spelled as the catalogue spells them are taken as."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from roofcast.data.errors import InputError
from roofcast.data.precision_names import WeightFormat, parse_precision, parse_weights
from roofcast.data.specs import PRECISIONS
from roofcast.features.descriptors.engine_names import OTHER, nearest_engine

if TYPE_CHECKING:
    from roofcast.data.catalog import Catalog


def name_remarks(columns: Mapping[str, Iterable[Any]], catalog: Catalog) -> list[str]:
    """Return, for each row as it was given, what its names are taken as, whatever the order of the columns.

    `columns`: at least one; those of models, accelerators, engines and precisions are read.
    """
    n_row = len([*next(iter(columns.values()))])
    parts: list[list[str]] = []
    precisions = sorted(name for name in columns if name.endswith("_precision"))
    for field in ("model", "accelerator", "engine", *precisions):
        texts = [cell if isinstance(cell, str) else "" for cell in columns.get(field, ())]
        remarks = {text: name_remark(field, text, catalog) for text in dict.fromkeys(texts)}
        parts += [[remarks[text] for text in texts]] if any(remarks.values()) else []
    return ["; ".join(filter(None, row)) for row in zip(*parts, strict=True)] if parts else [""] * n_row


def name_remark(field: str, name: str, catalog: Catalog) -> str:
    """Return what a name of one of these fields is taken as; blank if it is unknown, or spelled as known."""
    if not name.strip():
        return ""
    if field == "engine":
        meaning = nearest_engine(name)
        is_own = meaning == OTHER or name.strip().lower() == meaning
        return "" if is_own else f"engine {name!r} is predicted as {meaning}"
    if "precision" in field:
        weights = parse_weights(name) if "weight" in field else WeightFormat(parse_precision(name))
        is_known = bool(weights.precision) and name.strip() not in PRECISIONS
        return f"{field} {name!r} is taken as {weights}" if is_known else ""
    try:
        return catalog.remark(field, name)
    except InputError:
        return ""


def request_remarks(model: object, names: Mapping[str, Iterable[str]], catalog: Catalog) -> list[str]:
    """Return the remarks about the names of a request, by field; a model with its configuration has none."""
    named = {"model": [model] if isinstance(model, str) else [], **names}
    remarks = (name_remark(field, name, catalog) for field, listed in named.items() for name in listed)
    return [*dict.fromkeys(filter(None, remarks))]
