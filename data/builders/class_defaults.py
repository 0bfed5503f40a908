"""Defaults of the configuration classes of Transformers, by ``model_type``: ``python -m builders.class_defaults``.

Writes the fields that `model_config` reads. It needs ``transformers``, which nothing else of the project does; lists
with a value for each layer become a head and a cycle, so that they apply to any number of layers.
"""

import argparse
import importlib
import inspect
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from roofcast.data.model_config.class_defaults import FILE
from roofcast.data.model_config.field_names import HIDDEN, LAYERS, READ_FIELDS

_SHORTEST: Final = 8
_LONGEST_HEAD: Final = 8


def compress(values: Sequence[Any]) -> dict[str, Any] | None:
    """Return the shortest head and cycle that make a list; None if it has no cycle.

    Examples
    --------
    >>> compress(["dense", *["sparse"] * 9]), compress([0, 0, 1] * 4)
    ({'head': ['dense'], 'cycle': ['sparse']}, {'head': [], 'cycle': [0, 0, 1]})
    """
    for n_head in range(_LONGEST_HEAD):
        rest = values[n_head:]
        for n_cycle in range(1, len(rest) // 2 + 1):
            if all(value == rest[i % n_cycle] for i, value in enumerate(rest)):
                return {"head": [*values[:n_head]], "cycle": [*rest[:n_cycle]]}
    return None


def read_class(config_class: type) -> dict[str, Any]:
    """Return the defaults of a configuration class that `model_config` reads; empty if it has no defaults."""
    invalid = importlib.import_module("huggingface_hub.errors").StrictDataclassError
    try:
        fields = config_class().to_dict()
    except (ValueError, invalid):  # a part whose type has to be named, or defaults that its validators refuse
        return {}
    stated = {name: getattr(config_class, name, None) for name in fields}
    lists = {name: compress(v) for name, v in fields.items() if isinstance(v, list) and len(v) >= _SHORTEST}
    known = {name: v for name, v in {**stated, **lists}.items() if isinstance(v, int | str | dict)}
    known |= {name: v for name, v in _written(config_class).items() if name not in known}
    for name, target in getattr(config_class, "attribute_map", {}).items():
        if target in known:
            known.setdefault(name, known[target])
    return {name: known[name] for name in sorted(READ_FIELDS & known.keys()) if known[name] not in ("", "auto", {})}


def _written(config_class: type) -> dict[str, Any]:
    """Return the defaults of the arguments of a class that has no typed fields."""
    arguments = inspect.signature(config_class).parameters.values()
    return {a.name: a.default for a in arguments if isinstance(a.default, int | str)}


def collect() -> dict[str, Any]:
    """Return the version of Transformers and the defaults of all its text models by ``model_type``."""
    transformers = importlib.import_module("transformers")
    auto = importlib.import_module("transformers.models.auto.configuration_auto")
    types: dict[str, Any] = {}
    for name in dict(auto.CONFIG_MAPPING_NAMES):
        try:
            config_class = auto.CONFIG_MAPPING[name]
        except (ImportError, AttributeError, KeyError):
            continue
        sections = getattr(config_class, "sub_configs", {})
        parts = [config_class, *sections.values()]
        for part in parts:
            found = read_class(part) if hasattr(part, "model_type") else {}
            if {*HIDDEN} & found.keys() and {*LAYERS, "depth"} & found.keys():
                types[part.model_type] = found
    return {"transformers": transformers.__version__, "types": dict(sorted(types.items()))}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description="Write the defaults of Transformers' configuration classes.")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args(arguments)
    table = collect()
    lines = [f" {json.dumps(name)}: {json.dumps(fields)}" for name, fields in table["types"].items()]
    head = f'{{"transformers": {json.dumps(table["transformers"])}, "types": {{\n'
    options.out.write_text(head + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    print(f"{options.out}: {len(lines)} types of transformers {table['transformers']}")


if __name__ == "__main__":
    main()
