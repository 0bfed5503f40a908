"""Conversion of collected facts into the catalogue's tables: ``python -m builders.catalog.build --raw DIR``.

`DIR/catalog` holds ``models.csv``, ``accelerators.csv``, ``prices.csv``, ``model_aliases.csv`` and
``gpu_aliases.csv`` as collected, and ``params_check.csv``, which says why a published count of weights is another. A
row that becomes no valid spec is left out and its reason printed. A model that is described by a config which was not
collected keeps its present row, and its name is printed.

`DIR/catalog_2026_11` is a later collection: ``models/owner__name.json``, which are ``config.json`` files,
``accelerators.csv``, ``offers.csv`` and ``DUPLICATES.csv``, which lists offers of the table that are the same as
others. Its rows, and those of ``added_*`` beside this module, replace those of the same key.

`DIR/catalog_2026_12` has newer offers by node, in ``offers.csv`` and ``offers_capacity_blocks.csv``, further
``accelerators.csv``, and ``node_rules.csv``, which becomes a table of its own.
"""

import argparse
import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from builders.catalog import convert
from builders.catalog.convert import (
    ACCELERATOR_COLUMNS,
    FACTS,
    MODEL_COLUMNS,
    OWN_COLUMNS,
    Row,
    SkippedRow,
    convert_offer,
    name_key,
    offer_key,
)
from builders.catalog.layer_columns import with_layers
from builders.catalog.nodes import node_rows, rule_rows
from roofcast.data import catalog
from roofcast.data.catalog import Catalog
from roofcast.data.model_config.huggingface import load_model_config, model_from_config, with_known_lineage
from roofcast.data.specs import ModelSpec

HERE: Final = Path(__file__).parent
FIRST: Final = "catalog"
LATER: Final = "catalog_2026_11"
LATEST: Final = "catalog_2026_12"
NODE_LISTS: Final = ("offers.csv", "offers_capacity_blocks.csv")
SHIPPED: Final = Path(catalog.__file__).parent

_TABLES: Final[Sequence[tuple[str, str, Callable[[Row], Row]]]] = (
    ("models.csv", "models.csv", convert.convert_model),
    ("accelerators.csv", "accelerators.csv", convert.convert_accelerator),
    ("prices.csv", "offers.csv", convert.convert_offer),
    ("model_aliases.csv", "model_aliases.csv", convert.convert_model_alias),
    ("gpu_aliases.csv", "accelerator_aliases.csv", convert.convert_accelerator_alias),
)
_ALIAS_COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "model_aliases.csv": ("alias", "id", "weight_precision"),
    "accelerator_aliases.csv": ("alias", "id"),
}
_SOURCE: Final = "aiconfigurator-core 0.12.0 (PyPI) model_configs/{}"

Tables = dict[str, list[Row]]
"""Rows by the name of a table's file."""


def build(raw: Path, configs: Path | None = None) -> tuple[Tables, Counter[str], list[str]]:
    """Return the six tables, how many rows were left out by table and reason, and the models whose row was kept.

    `configs`: folder of the configs of further models, named ``owner--name_config.json``.
    """
    skipped: Counter[str] = Counter()
    tables = convert_tables(raw / FIRST, configs or raw / FIRST, skipped)
    extend(tables, raw / LATER, skipped)
    sheets = added_accelerators(raw / LATEST / "accelerators.csv")
    tables["accelerators.csv"] = _replaced(tables["accelerators.csv"], sheets, "id")
    newer = [row for name in NODE_LISTS for row in read(raw / LATEST / name)]
    tables["offers.csv"] = node_rows(tables["offers.csv"], newer, skipped)
    tables["node_rules.csv"] = rule_rows(read(raw / LATEST / "node_rules.csv"))
    unbuilt = FACTS["configs"].keys() - {row["id"] for row in tables["models.csv"]}
    kept = [row for row in read(SHIPPED / "models.csv") if row["id"] in unbuilt]
    tables["models.csv"] = _replaced(tables["models.csv"], kept, "id")
    skipped["models.csv: no config was given"] += len(unbuilt) - len(kept)
    tables["models.csv"] = with_layers(tables["models.csv"])
    return tables, skipped, [row["id"] for row in kept]


def convert_tables(folder: Path, configs: Path, skipped: Counter[str]) -> Tables:
    """Return the tables of the first collection; count the skipped rows."""
    tables: Tables = {}
    known: dict[str, set[str]] = {}
    checks = {row["id"]: row for row in read(folder / "params_check.csv")}
    for source, target, convert_row in _TABLES:
        rows = []
        for row in read(folder / source):
            try:
                rows.append(convert_row(checks.get(row.get("id", ""), {}) | row))
            except SkippedRow as reason:
                skipped[f"{target}: {reason}"] += 1
        if target == "models.csv":
            rows += _further_models(configs, rows)
        if target == "accelerators.csv":
            rows += [dict.fromkeys(ACCELERATOR_COLUMNS, "") | row for row in FACTS["added_accelerators"]]
        tables[target], reasons = convert.consolidate(target, rows, known)
        skipped.update(f"{target}: {reason}" for reason in reasons)
        known[target] = {row.get("id", "") for row in tables[target]}
    return tables


def _further_models(configs: Path, known: Sequence[Row]) -> list[Row]:
    rows = []
    for name, kin in sorted(FACTS["configs"].items()):
        file = configs / f"{name.replace('/', '--')}_config.json"
        if file.is_file():
            own = {**kin, "fold_group": kin["lineage"], "source": _SOURCE.format(file.name)}
            rows.append(model_row(load_model_config(file, name).model_copy(update=own), known))
    return rows


def extend(tables: Tables, raw: Path, skipped: Counter[str]) -> None:
    """Add the rows of a later collection, and those listed beside this module."""
    tables["models.csv"] = _replaced(tables["models.csv"], added_models(raw / "models", tables["models.csv"]), "id")
    sheets = added_accelerators(raw / "accelerators.csv")
    tables["accelerators.csv"] = _replaced(tables["accelerators.csv"], sheets, "id")
    tables["offers.csv"] = merged_offers(raw, tables["offers.csv"], skipped)
    for name, columns in _ALIAS_COLUMNS.items():
        aliases = [{c: row[c] for c in columns} for row in read(HERE / f"added_{name}")]
        tables[name] = _replaced(tables[name], aliases, "alias")


def merged_offers(raw: Path, offers: Sequence[Row], skipped: Counter[str]) -> list[Row]:
    """Return the table's offers without duplicates and those of the collection; count the skipped rows.

    Of one provider, region, instance type and pricing the collection's row counts, as it has the newest price.
    """
    known = [row | {"memory_gb": row["host_memory_gib"]} for row in (*offers, *read(raw / "offers.csv"))]
    doubles = {offer_key(row) for row in read(raw / "DUPLICATES.csv") if row["keep"] != "both"}
    doubles |= {tuple(row["key"]) for row in FACTS["duplicates"]}
    repairs = {tuple(row["key"]): {n: v for n, v in row.items() if n != "key"} for row in FACTS["offers"]}
    merged: dict[tuple[str, ...], Row] = {}
    for row in known:
        try:
            merged[offer_key(row)] = convert_offer(row) | repairs.get(offer_key(row), {})
        except SkippedRow as reason:
            skipped[f"offers.csv: {reason}"] += 1
    return [merged[key] for key in sorted(merged.keys() - doubles)]


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


def added_accelerators(sheets: Path) -> list[Row]:
    """Return data sheets with the corrections of ``added_accelerators.json``, less those that it leaves out."""
    changes = json.loads((HERE / "added_accelerators.json").read_text(encoding="utf-8"))
    rows = [
        row | changes["repairs"].get(row["id"], {}) for row in read(sheets) if row["id"] not in changes["left_out"]
    ]
    return [{column: row[column] for column in ACCELERATOR_COLUMNS} for row in rows]


def model_row(spec: ModelSpec, known: Sequence[Row], lineage: str = "") -> Row:
    """Return the row of ``models.csv``, with the fold group, and unless given the lineage, of a model of its shape.

    `known`: rows of models that may be its kin.
    """
    kin = {row["id"]: ModelSpec.parse({n: v for n, v in row.items() if v}) for row in known}
    fields = with_known_lineage(spec, Catalog(models=kin, accelerators={})).model_dump(mode="json")
    fields["lineage"] = lineage or fields["lineage"]
    return {column: _cell(fields[column]) for column in (*MODEL_COLUMNS, "n_param_difference", *OWN_COLUMNS)}


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
    """Convert the tables; print the models that keep their rows, and the skipped rows."""
    parser = argparse.ArgumentParser(description="Convert collected facts into the catalogue's tables.")
    parser.add_argument("--raw", type=Path, required=True, help="folder of the collections")
    parser.add_argument("--configs", type=Path, help="folder of configs named owner--name_config.json")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="folder to write to")
    options = parser.parse_args(arguments)
    tables, skipped, kept = build(options.raw, options.configs)
    for name, rows in tables.items():
        write(options.out / name, rows)
    if kept:
        print(f"models.csv keeps {len(kept)} rows whose config was not collected: {', '.join(kept)}")
    for reason, count in sorted((+skipped).items()):
        print(f"{count:5d} left out of {reason}")


if __name__ == "__main__":
    main()
