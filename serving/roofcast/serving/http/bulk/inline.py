"""Models that rows in bulk bring along: ``{"name": ..., "config": {...}}`` in place of a name."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import to_json

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError
from roofcast.data.model_config.huggingface import model_from_config, with_known_lineage
from roofcast.data.specs import ModelSpec
from roofcast.serving.request_fields import ModelConfig

MOST_MODELS: Final = 100
"""Different configurations in one body, as in a JSON request."""


class InlineModels:
    """The models of one body, each configuration read once.

    Rows may call two models the same, or one as the catalogue does: each row means its own. So each model gets an id
    that no name can be.

    Parameters
    ----------
    catalog
        Whose lineages are known.

    Attributes
    ----------
    specs
        By id, what was read so far.
    names
        By id, what the rows call it.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.specs: dict[str, ModelSpec] = {}
        self.names: dict[str, str] = {}

    def read(self, model: dict[str, Any]) -> str:
        """Return the id of a row's model.

        Raises
        ------
        InputError
            If it is no name with the configuration of a language model, or the body holds too many of them.
        """
        key = "\0" + hashlib.sha256(to_json(model)).hexdigest()
        if key not in self.specs:
            if len(self.specs) == MOST_MODELS:
                problem = f"at most {MOST_MODELS} different configurations are read of a body; send it in parts"
                raise InputError("model", problem)
            given = _checked(model)
            spec = with_known_lineage(_spec(given), self._catalog)
            self.specs[key], self.names[key] = spec.model_copy(update={"id": key}), given.name
        return key

    def known(self, catalog: Catalog) -> Catalog:
        """Return a catalogue that knows the models read so far too."""
        return catalog.with_models(self.specs.values()) if self.specs else catalog


def _spec(given: ModelConfig) -> ModelSpec:
    try:
        return model_from_config(given.config, given.name)
    except InputError as error:
        raise InputError(".".join(filter(None, ["model.config", error.field])), error.problem) from error


def _checked(model: dict[str, Any]) -> ModelConfig:
    try:
        return ModelConfig.model_validate(model)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(["model", *map(str, first["loc"])])
        cure = 'give a name, or {"name": ..., "config": {...}} with the config.json of the model'
        raise InputError(field, f"{first['msg'].lower()}; {cure}") from error
