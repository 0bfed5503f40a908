"""Conversion of collected facts into the catalogue's tables: ``python -m builders.catalog.build --raw DIR``.

Models and offers are built: their figures are counted, completed, merged and corrected. Aliases are those of the
tables beside this module, with a reason for each. Accelerators are rows of ``accelerators.csv`` alone, each with its
source.

`DIR/catalog` holds ``models.csv`` and ``prices.csv`` as collected, and ``params_check.csv``, which says why a
published count of weights is another. A row that becomes no valid spec is left out and its reason printed. A model
that is described by a config which was not collected keeps its present row, and its name is printed.

`DIR/catalog_2026_11` is a later collection: ``models/owner__name.json``, which are ``config.json`` files,
``offers.csv`` and ``DUPLICATES.csv``, which lists offers of the table that are the same as others. Its rows, and
those of ``added_models.json`` beside this module, replace those of the same key.

`DIR/catalog_2026_12` has newer offers by node, in ``offers.csv`` and ``offers_capacity_blocks.csv``, and
``node_rules.csv``, which becomes a table of its own.
"""

import argparse
import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from builders.catalog.convert import (
    FACTS,
    MODEL_COLUMNS,
    OWN_COLUMNS,
    Row,
    SkippedRow,
    convert_model,
    convert_offer,
    name_key,
    newest,
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

_ALIAS_TABLES: Final = ("model_aliases.csv", "accelerator_aliases.csv")
_SOURCE: Final = "aiconfigurator-core 0.12.0 (PyPI) model_configs/{}"

Tables = dict[str, list[Row]]
"""Rows by the name of a table's file."""


def build(raw: Path, configs: Path | None = None) -> tuple[Tables, Counter[str], list[str]]:
    """Return the built tables, how many rows were left out by table and reason, and the models whose row was kept.

    `configs`: folder of the configs of further models, named ``owner--name_config.json``.
    """
    skipped: Counter[str] = Counter()
    models = collected_models(raw / FIRST, configs or raw / FIRST, skipped)
    models = _replaced(models, added_models(raw / LATER / "models", models), "id")
    unbuilt = FACTS["configs"].keys() - {row["id"] for row in models}
    kept = [row for row in read(SHIPPED / "models.csv") if row["id"] in unbuilt]
    skipped["models.csv: no config was given"] += len(unbuilt) - len(kept)
    offers = merged_offers(raw / LATER, collected_offers(raw / FIRST, skipped), skipped)
    newer = [row for name in NODE_LISTS for row in read(raw / LATEST / name)]
    tables = {
        "models.csv": with_layers(_replaced(models, kept, "id")),
        "offers.csv": node_rows(offers, newer, skipped),
        "node_rules.csv": rule_rows(read(raw / LATEST / "node_rules.csv")),
    }
    for name in _ALIAS_TABLES:
        tables[name] = [{c: text for c, text in row.items() if c != "reason"} for row in read(HERE / name)]
    return tables, skipped, [row["id"] for row in kept]


def collected_models(folder: Path, configs: Path, skipped: Counter[str]) -> list[Row]:
    """Return the models of the first collection; count the skipped rows."""
    checks = {row["id"]: row for row in read(folder / "params_check.csv")}
    collected = (checks.get(row["id"], {}) | row for row in read(folder / "models.csv"))
    models = _converted(collected, convert_model, "models.csv", skipped)
    return models + _further_models(configs, models)


def collected_offers(folder: Path, skipped: Counter[str]) -> list[Row]:
    """Return the offers of the first collection for accelerators of the catalogue; count the skipped rows."""
    parts = {row["id"] for row in read(SHIPPED / "accelerators.csv")}
    converted = _converted(read(folder / "prices.csv"), convert_offer, "offers.csv", skipped)
    known = [row for row in converted if row["accelerator"] in parts]
    offers = newest(known)
    skipped["offers.csv: accelerator left out"] += len(converted) - len(known)
    skipped["offers.csv: newer one kept"] += len(known) - len(offers)
    return offers


def _converted(
    collected: Iterable[Row], convert: Callable[[Row], Row], table: str, skipped: Counter[str]
) -> list[Row]:
    rows = []
    for row in collected:
        try:
            rows.append(convert(row))
        except SkippedRow as reason:
            skipped[f"{table}: {reason}"] += 1
    return rows


def _further_models(configs: Path, known: Sequence[Row]) -> list[Row]:
    rows = []
    for name, kin in sorted(FACTS["configs"].items()):
        file = configs / f"{name.replace('/', '--')}_config.json"
        if file.is_file():
            own = {**kin, "fold_group": kin["lineage"], "source": _SOURCE.format(file.name)}
            rows.append(model_row(load_model_config(file, name).model_copy(update=own), known))
    return rows


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
