"""Defaults of Transformers' configuration classes by ``model_type``, from the table of `builders.class_defaults`."""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from roofcast.data.model_config.field_names import LAYERS, MIXER_SCHEDULES, MLP_SCHEDULES

FILE: Final = Path(__file__).with_name("class_defaults.json")


@functools.cache
def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return table


def table_version() -> str:
    """Return the version of Transformers whose defaults are stored."""
    return str(_table()["transformers"])


def class_defaults(model_type: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a config leaves to its class; empty for an unknown ``model_type``.

    Lists with a value for each layer have the length of the config's layers; a config that says in another way which
    layers are which gets no list of them.

    Examples
    --------
    >>> fields = class_defaults("gemma3_text", {"num_hidden_layers": 7})
    >>> fields["num_key_value_heads"], fields["layer_types"].count("full_attention")
    (4, 1)
    """
    fields: dict[str, Any] = _table()["types"].get(model_type, {})
    given = next((config[name] for name in LAYERS if isinstance(config.get(name), int)), None)
    n_layer = given or next((fields[name] for name in LAYERS if name in fields), 0)
    stated = {name for group in (MIXER_SCHEDULES, MLP_SCHEDULES) if {*group} & config.keys() for name in group}
    return {
        name: _repeat(value, n_layer) if isinstance(value, dict) and "cycle" in value else value
        for name, value in fields.items()
        if name not in stated
    }


def _repeat(value: Mapping[str, list[Any]], n_layer: int) -> list[Any]:
    head, cycle = value["head"], value["cycle"]
    n_cycle = max(n_layer - len(head), 0)
    return [*head, *(cycle[i % len(cycle)] for i in range(n_cycle))][:n_layer]
