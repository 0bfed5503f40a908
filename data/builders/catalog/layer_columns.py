"""Layers of catalogue models from ``layer_configs.json``: ``python -m builders.catalog.layer_columns``.

An entry has the fields of a `config.json` that the reader needs, or the id of a model with the same layers. The
weights that it counts must be those of the row within `TOLERANCE`; a published count that holds a tower and nothing
else gives the tower's weights.
"""

import argparse
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from builders.catalog.nodes import Row
from roofcast.data.layer_kinds import LayerKind, Layers, Module
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.data.specs import ModelSpec

TOLERANCE: Final = 5e-3
LAYER_COLUMNS: Final = ("layers", "n_param_other")
_FILE: Final = Path(__file__).with_name("layer_configs.json")
_TOWER: Final = "vision or audio tower"


def with_layers(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the cells ``layers`` and ``n_param_other``, blank where the figures of the row say all.

    A config that counts other weights than its row has is of another model, and not used.
    """
    configs: Mapping[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return [row | _cells(row, configs) for row in rows]


def _cells(row: Row, configs: Mapping[str, Any]) -> Row:
    entry = configs.get(row["id"])
    published = int(row["n_param_published"] or 0)
    is_alone = _TOWER in row["n_param_difference"] and published > int(row["n_param"])
    if entry is None and not is_alone:
        return dict.fromkeys(LAYER_COLUMNS, "")
    if entry is None:
        spec = ModelSpec.parse({n: v for n, v in row.items() if v and n not in LAYER_COLUMNS})
    else:
        spec = model_from_config(configs[entry] if isinstance(entry, str) else entry, row["id"])
    ratio = spec.n_param / int(row["n_param"]) - 1
    if abs(ratio) > TOLERANCE:
        return dict.fromkeys(LAYER_COLUMNS, "")
    layers = [kind for kind in spec.layers if not is_alone or not _is_tower(kind)]
    if is_alone:
        layers.append(Module(role="tower", n=1, n_param_layer=published - spec.n_param))
    cell = json.dumps([_short(kind) for kind in layers], separators=(",", ":"))
    return {"layers": cell, "n_param_other": str(spec.n_param_other)}


def _is_tower(kind: LayerKind) -> bool:
    return isinstance(kind, Module) and kind.role == "tower"


def _short(kind: LayerKind) -> dict[str, Any]:
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    fields = TypeAdapter(Layers).dump_python((kind,), mode="json")[0]
    return {name: value for name, value in fields.items() if name == "kind" or value != defaults[name]}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the two columns of a catalogue's ``models.csv`` again."""
    from builders.catalog.build import SHIPPED, read, write  # noqa: PLC0415 build uses this module

    parser = argparse.ArgumentParser(description="Write the layers of catalogue models again.")
    parser.add_argument("--table", type=Path, default=SHIPPED / "models.csv")
    options = parser.parse_args(arguments)
    rows = with_layers(read(options.table))
    write(options.table, rows)
    print(f"{sum(bool(row['layers']) for row in rows)} of {len(rows)} models have kinds of layers")


if __name__ == "__main__":
    main()
