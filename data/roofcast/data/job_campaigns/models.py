"""Models of training benchmarks that are in no catalogue: plain shapes, and models cut to fewer layers.

`models.csv` states each with its source. A parameter count that no source states is that of the shape; for shapes of
BigScience it is l (12 h^2 + 13 h) + (v + s + 2) h.
"""

from __future__ import annotations

import csv
import functools
from importlib import resources
from typing import Final

from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.specs import ModelSpec

FILE: Final = "models.csv"


def load_job_models() -> tuple[ModelSpec, ...]:
    """Return the models of the training campaigns that are not in the catalogue.

    Raises
    ------
    SchemaError
        If a row is no valid spec; names file, line and field.

    Examples
    --------
    >>> min(spec.n_layer for spec in load_job_models())
    2
    """
    text = (resources.files("roofcast.data.job_campaigns") / FILE).read_text(encoding="utf-8")
    return tuple(_spec(line, row) for line, row in enumerate(csv.DictReader(text.splitlines()), start=2))


def _spec(line: int, row: dict[str, str]) -> ModelSpec:
    try:
        return ModelSpec.parse({name: value for name, value in row.items() if value})
    except InputError as error:
        raise SchemaError(error.field, error.problem, FILE, line) from error


@functools.cache
def job_catalog() -> Catalog:
    """Return the catalogue with the models of the training campaigns; cached."""
    return load_catalog().with_models(load_job_models())
