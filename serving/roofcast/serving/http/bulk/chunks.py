"""Chunks of rows of a bulk prediction, and the models that rows bring along."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError
from pydantic_core import to_json

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError
from roofcast.data.measurements.cells import Table
from roofcast.data.model_config.huggingface import model_from_config, with_known_lineage
from roofcast.data.specs import ModelSpec
from roofcast.serving.request_fields import ModelConfig

if TYPE_CHECKING:
    import pyarrow as pa

MAX_MODELS: Final = 100
"""Different configurations in one body, as in a JSON request."""


class InlineModels:
    """Models of one body; each configuration is parsed once.

    Two rows may give the same name to different configurations, and the name may be one of the catalogue. So each
    configuration gets an id that no name can equal.

    - `specs`: Models by id.
    - `names`: Names in the rows by id.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.specs: dict[str, ModelSpec] = {}
        self.names: dict[str, str] = {}

    def add(self, model: dict[str, Any]) -> str:
        """Return the id of a row's model.

        Raises `InputError` if it is no name with the configuration of a language model, or the body has more than
        `MAX_MODELS`.
        """
        key = "\0" + hashlib.sha256(to_json(model)).hexdigest()
        if key not in self.specs:
            if len(self.specs) == MAX_MODELS:
                message = f"a body may have at most {MAX_MODELS} different configurations; send it in parts"
                raise InputError("model", message)
            name, spec = _read_model(model)
            spec = with_known_lineage(spec, self._catalog)
            self.specs[key], self.names[key] = spec.model_copy(update={"id": key}), name
        return key

    def extend(self, catalog: Catalog) -> Catalog:
        """Return the catalogue with the models added so far."""
        return catalog.with_models(self.specs.values()) if self.specs else catalog


def _read_model(model: dict[str, Any]) -> tuple[str, ModelSpec]:
    try:
        checked = ModelConfig.model_validate(model)
        return checked.name, model_from_config(checked.config, checked.name)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(["model", *map(str, first["loc"])])
        cure = 'give a name, or {"name": ..., "config": {...}} with the config.json of the model'
        raise InputError(field, f"{first['msg'].lower()}; {cure}") from error
    except InputError as error:
        raise InputError(".".join(filter(None, ["model.config", error.field])), error.problem) from error


N_ROW: Final = 5_000
"""Rows per chunk: enough to amortise the cost of a call, few enough for some megabytes."""

MAX_TEXT: Final = 1_000
"""Longest text in a row, in characters, as in a JSON request."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows that are answered together.

    - `columns`: Input columns; a row that could not be read is blank.
    - `unit`: Name of a row in messages, such as ``line``; empty to leave reasons without a row number.
    - `numbers`: Number of each row in the request.
    - `errors`: Messages of the rows that could not be read, by their index.
    - `echoes`: Rows as they were sent, JSON objects without their closing brace; None if they were not sent as JSON.
    - `batch`: Rows as they were sent in Parquet; None if they were not.
    - `models`: Models that rows bring along; None if they cannot.
    """

    columns: Table
    unit: str
    numbers: Sequence[int]
    errors: Mapping[int, str] = field(default_factory=dict)
    echoes: Sequence[bytes] | None = None
    batch: pa.RecordBatch | None = None
    models: InlineModels | None = None
