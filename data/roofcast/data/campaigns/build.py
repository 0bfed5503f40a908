"""Rebuild the rows of a campaign from its published files: ``python -m roofcast.data.campaigns.build --help``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.data.campaigns.build_llm_pilot import build_llm_pilot
from roofcast.data.measurements import KEY_COLUMNS

BUILDERS: Final[dict[str, Callable[[Path, Path], pd.DataFrame]]] = {"llm_pilot": build_llm_pilot}


def save_rows(table: pd.DataFrame, file: Path) -> None:
    """Write a campaign's rows in order of their keys, without blank columns; the same rows give the same bytes."""
    ordered = table.sort_values(list(KEY_COLUMNS), kind="stable")
    is_blank = ordered.isna().all() | (ordered == "").all()
    texts = ordered.loc[:, ~is_blank].apply(lambda column: column.map(_cell))
    text = texts.to_csv(index=False, lineterminator="\n")
    file.write_text(text, encoding="utf-8", newline="\n")


def _cell(value: float | str) -> str:
    if isinstance(value, float):
        return "" if pd.isna(value) else repr(float(value)).removesuffix(".0")
    return str(value)


def main(arguments: Sequence[str] | None = None) -> None:
    """Build a campaign and write its rows."""
    parser = argparse.ArgumentParser(prog="roofcast.data.campaigns.build", description=__doc__)
    parser.add_argument("campaign", choices=sorted(BUILDERS))
    parser.add_argument("--raw", type=Path, required=True, help="folder or archive of the raw files")
    parser.add_argument("--published", type=Path, required=True, help="file of the published figures")
    parser.add_argument("--out", type=Path, help="folder to write to; that of the package by default")
    options = parser.parse_args(arguments)
    folder = options.out or Path(__file__).parent / options.campaign
    table = BUILDERS[options.campaign](options.raw, options.published)
    save_rows(table, folder / "rows.csv")
    print(f"{len(table)} rows written")


if __name__ == "__main__":
    main()
