"""Extension of the catalogue's tables by a later collection: ``python -m builders.catalog.extend --raw DIR``.

`DIR` holds ``models/owner__name.json``, which are ``config.json`` files, ``accelerators.csv``, ``offers.csv`` and
``DUPLICATES.csv``, which lists offers of the table that are the same as others. The models and aliases to add, and
corrections of data sheets, are listed in ``added_*`` beside this module. A row replaces that of the same key, so that
a second run changes nothing. It runs after ``builders.catalog.build``.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from builders.catalog.additions import model_row
from builders.catalog.convert import ACCELERATOR_COLUMNS, Row, SkippedRow, convert_offer, name_key, offer_key
from builders.catalog.repairs import OFFER_DUPLICATES, OFFER_REPAIRS
from roofcast.data import catalog
from roofcast.data.model_config.huggingface import load_model_config, model_from_config
from roofcast.data.specs import ModelSpec

HERE: Final = Path(__file__).parent
TABLES: Final = Path(catalog.__file__).parent

_ALIAS_COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "model_aliases.csv": ("alias", "id", "weight_precision"),
    "accelerator_aliases.csv": ("alias", "id"),
}


def extend(raw: Path, tables: Path = TABLES, added: Path = HERE) -> Counter[str]:
    """Add the rows of a collection, and those listed in the folder `added`, to the tables in a folder.

    Returns
    -------
    How many offers were left out, by reason.
    """
    models = read(tables / "models.csv")
    _replace(tables / "models.csv", models, added_models(raw / "models", models, added), "id")
    sheets = added_accelerators(raw / "accelerators.csv", added)
    _replace(tables / "accelerators.csv", read(tables / "accelerators.csv"), sheets, "id")
    offers, skipped = merged_offers(raw, read(tables / "offers.csv"))
    write(tables / "offers.csv", offers)
    for name, columns in _ALIAS_COLUMNS.items():
        aliases = [{c: row[c] for c in columns} for row in read(added / f"added_{name}")]
        _replace(tables / name, read(tables / name), aliases, "alias")
    return skipped


def merged_offers(raw: Path, offers: Sequence[Row]) -> tuple[list[Row], Counter[str]]:
    """Return the table's offers without duplicates and those of the collection, and the number left out by reason.

    Of one provider, region, instance type and pricing the collection's row counts, as it has the newest price.
    """
    known = [row | {"memory_gb": row["host_memory_gib"]} for row in (*offers, *read(raw / "offers.csv"))]
    doubles = {offer_key(row) for row in read(raw / "DUPLICATES.csv") if row["keep"] != "both"}
    merged: dict[tuple[str, ...], Row] = {}
    skipped: Counter[str] = Counter()
    for row in known:
        try:
            merged[offer_key(row)] = convert_offer(row) | OFFER_REPAIRS.get(offer_key(row), {})
        except SkippedRow as reason:
            skipped[f"offers.csv: {reason}"] += 1
    return [merged[key] for key in sorted(merged.keys() - doubles - OFFER_DUPLICATES)], skipped


def added_models(configs: Path, models: Sequence[Row], added: Path) -> list[Row]:
    """Return the rows of the models in ``added_models.json``.

    An entry has either the name of a `file` or the fields of a `config`; a model of the shape of a known one has its
    fold group, and its lineage unless the entry names one.
    """
    entries: Mapping[str, Mapping[str, Any]] = json.loads((added / "added_models.json").read_text(encoding="utf-8"))
    known = [row for row in models if row["id"] not in entries]
    rows: list[Row] = []
    for name, entry in entries.items():
        spec = (
            model_from_config(entry["config"], name)
            if "config" in entry
            else load_model_config(configs / entry["file"], name)
        )
        groups = {row["lineage"]: row["fold_group"] for row in (*known, *rows)}
        lineage = entry.get("lineage", "")
        fold = {"fold_group": groups.get(lineage, lineage)} if lineage else {}
        own = {k: v for k, v in entry.items() if k not in {"file", "config"}} | fold
        rows.append(model_row(ModelSpec.parse({**spec.model_dump(), **own}), [*known, *rows], lineage))
    return rows


def added_accelerators(sheets: Path, added: Path) -> list[Row]:
    """Return data sheets with the corrections of ``added_accelerators.json``, less those that it leaves out."""
    changes = json.loads((added / "added_accelerators.json").read_text(encoding="utf-8"))
    rows = [
        row | changes["repairs"].get(row["id"], {}) for row in read(sheets) if row["id"] not in changes["left_out"]
    ]
    return [{column: row[column] for column in ACCELERATOR_COLUMNS} for row in rows]


def _replace(path: Path, rows: Iterable[Row], added: Iterable[Row], key: str) -> None:
    merged = {name_key(row[key]): row for row in (*rows, *added)}
    write(path, [merged[name] for name in sorted(merged)])


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
    """Extend the tables."""
    parser = argparse.ArgumentParser(description="Add the rows of a collection to the catalogue's tables.")
    parser.add_argument("--raw", type=Path, required=True, help="folder of the collection")
    parser.add_argument("--tables", type=Path, default=TABLES, help="folder of the tables")
    options = parser.parse_args(arguments)
    for reason, count in sorted(extend(options.raw, options.tables).items()):
        print(f"{count:5d} left out of {reason}")


if __name__ == "__main__":
    main()
