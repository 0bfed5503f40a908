"""Conversion of collected facts into the catalogue's tables: ``python -m builders.catalog.build --raw DIR``.

Built are the models of ``added_models.json`` beside this module, whose weights are counted from their configs, the
layers of models, and offers. Other models, and accelerators, are rows of the catalogue's tables alone, each with its
source. Aliases are those of the tables beside this module, with a reason for each.

`DIR/catalog_2026_11/models` holds configs, ``owner__name.json``. `DIR/catalog_2026_12` holds lists of offers,
``offers.csv`` and ``offers_capacity_blocks.csv``, which are merged into the catalogue's table, and
``node_rules.csv``, which becomes a table of its own. Why an offer was left out is printed.
"""

import argparse
import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from builders.catalog.layer_columns import LAYER_COLUMNS, with_layers
from builders.catalog.nodes import Row, name_key, node_rows, rule_rows
from roofcast.data import catalog
from roofcast.data.catalog import Catalog
from roofcast.data.model_config.huggingface import load_model_config, model_from_config, with_known_lineage
from roofcast.data.specs import ModelSpec

HERE: Final = Path(__file__).parent
CONFIGS: Final = "catalog_2026_11/models"
LISTS: Final = "catalog_2026_12"
NODE_LISTS: Final = ("offers.csv", "offers_capacity_blocks.csv")
SHIPPED: Final = Path(catalog.__file__).parent

_ALIAS_TABLES: Final = ("model_aliases.csv", "accelerator_aliases.csv")

Tables = dict[str, list[Row]]
"""Rows by the name of a table's file."""


def build(raw: Path) -> tuple[Tables, Counter[str]]:
    """Return the built tables, and how many offers were left out by reason."""
    skipped: Counter[str] = Counter()
    models = read(SHIPPED / "models.csv")
    models = _replaced(models, added_models(raw / CONFIGS, models), "id")
    newer = [row for name in NODE_LISTS for row in read(raw / LISTS / name)]
    tables = {
        "models.csv": with_layers(models),
        "offers.csv": node_rows(read(SHIPPED / "offers.csv"), newer, skipped),
        "node_rules.csv": rule_rows(read(raw / LISTS / "node_rules.csv")),
    }
    for name in _ALIAS_TABLES:
        tables[name] = [{c: text for c, text in row.items() if c != "reason"} for row in read(HERE / name)]
    return tables, skipped


def added_models(configs: Path, models: Sequence[Row]) -> list[Row]:
    """Return the rows of the models in ``added_models.json``.

    An entry has either the name of a `file` or the fields of a `config`; a model of the shape of a known one has its
    fold group, and its lineage unless the entry names one.
    """
    entries: Mapping[str, Mapping[str, Any]] = json.loads((HERE / "added_models.json").read_text(encoding="utf-8"))
    known = [row for row in models if row["id"] not in entries]
    rows: list[Row] = []
    for name, entry in entries.items():
        if "config" in entry:
            spec = model_from_config(entry["config"], name)
        else:
            spec = load_model_config(configs / entry["file"], name)
        groups = {row["lineage"]: row["fold_group"] for row in (*known, *rows)}
        lineage = entry.get("lineage", "")
        fold = {"fold_group": groups.get(lineage, lineage)} if lineage else {}
        own = {k: v for k, v in entry.items() if k not in {"file", "config"}} | fold
        rows.append(model_row(ModelSpec.parse({**spec.model_dump(), **own}), [*known, *rows], lineage))
    return rows


def model_row(spec: ModelSpec, known: Sequence[Row], lineage: str = "") -> Row:
    """Return the row of ``models.csv``, with the fold group, and unless given the lineage, of a model of its shape.

    `known`: rows of models that may be its kin.
    """
    kin = {row["id"]: ModelSpec.parse({n: v for n, v in row.items() if v}) for row in known}
    fields = with_known_lineage(spec, Catalog(models=kin, accelerators={})).model_dump(mode="json")
    fields["lineage"] = lineage or fields["lineage"]
    return {column: _cell(fields[column]) for column in known[0] if column not in LAYER_COLUMNS}


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value in {None, 0} else str(value)


def _replaced(rows: Iterable[Row], added: Iterable[Row], key: str) -> list[Row]:
    merged = {name_key(row[key]): row for row in (*rows, *added)}
    return [merged[name] for name in sorted(merged)]


def read(path: Path) -> list[Row]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def write(path: Path, rows: Sequence[Row]) -> None:
    """Write rows to a CSV file with the columns of all of them."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Convert the tables; print why offers were left out."""
    parser = argparse.ArgumentParser(description="Convert collected facts into the catalogue's tables.")
    parser.add_argument("--raw", type=Path, required=True, help="folder of the collections")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="folder to write to")
    options = parser.parse_args(arguments)
    tables, skipped = build(options.raw)
    for name, rows in tables.items():
        write(options.out / name, rows)
    for reason, count in sorted((+skipped).items()):
        print(f"{count:5d} left out of {reason}")


if __name__ == "__main__":
    main()
