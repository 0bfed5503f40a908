"""Conversion of collected facts into the catalogue's tables: ``python -m builders.catalog.build --raw DIR``.

`DIR` holds ``models.csv``, ``accelerators.csv``, ``prices.csv``, ``model_aliases.csv`` and ``gpu_aliases.csv`` as
collected, and ``params_check.csv``, which says why a published count of weights is another; a further folder may hold
the configs of models that were not collected. A row that becomes no valid spec is left out and its reason printed.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from builders.catalog import additions, convert
from builders.catalog.convert import Row, SkippedRow
from roofcast.data import catalog

_TABLES: Final[Sequence[tuple[str, str, Callable[[Row], Row]]]] = (
    ("models.csv", "models.csv", convert.convert_model),
    ("accelerators.csv", "accelerators.csv", convert.convert_accelerator),
    ("prices.csv", "offers.csv", convert.convert_offer),
    ("model_aliases.csv", "model_aliases.csv", convert.convert_model_alias),
    ("gpu_aliases.csv", "accelerator_aliases.csv", convert.convert_accelerator_alias),
)


def build(raw: Path, out: Path, configs: Path | None = None) -> Counter[str]:
    """Write the five tables into `out`.

    Parameters
    ----------
    raw
        Folder of the collected tables.
    out
        Folder to write to.
    configs
        Folder of the configs of further models.

    Returns
    -------
    How many rows were left out, by table and reason.
    """
    skipped: Counter[str] = Counter()
    known: dict[str, set[str]] = {}
    checks = {row["id"]: row for row in _read(raw / "params_check.csv")}
    for source, target, convert_row in _TABLES:
        rows = []
        for row in _read(raw / source):
            try:
                rows.append(convert_row(checks.get(row.get("id", ""), {}) | row))
            except SkippedRow as reason:
                skipped[f"{target}: {reason}"] += 1
        if target == "models.csv":
            rows += _added(configs or raw, rows, skipped)
        if target == "accelerators.csv":
            rows += additions.ADDED_ACCELERATORS
        rows, reasons = convert.consolidate(target, rows, known)
        skipped.update(f"{target}: {reason}" for reason in reasons)
        known[target] = {row.get("id", "") for row in rows}
        _write(out / target, rows)
    return skipped


def _added(configs: Path, known: Sequence[Row], skipped: Counter[str]) -> list[Row]:
    rows = []
    for name in sorted(additions.ADDED_MODELS):
        try:
            rows.append(additions.convert_config(name, configs, known))
        except SkippedRow as reason:
            skipped[f"models.csv: {reason}"] += 1
    return rows


def _read(path: Path) -> Iterable[Row]:
    with path.open(encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream)


def _write(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Convert the tables and print the skipped rows."""
    parser = argparse.ArgumentParser(description="Convert collected facts into the catalogue's tables.")
    parser.add_argument("--raw", type=Path, required=True, help="folder of the collected tables")
    parser.add_argument("--configs", type=Path, help="folder of configs named owner--name_config.json")
    parser.add_argument("--out", type=Path, default=Path(catalog.__file__).parent, help="folder to write to")
    options = parser.parse_args(arguments)
    for reason, count in sorted(build(options.raw, options.out, options.configs).items()):
        print(f"{count:5d} left out of {reason}")


if __name__ == "__main__":
    main()
