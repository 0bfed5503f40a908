"""Rebuild campaigns from their published files: ``python -m roofcast.data.campaigns.build --help``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.data.campaigns.build_llm_pilot import build_llm_pilot
from roofcast.data.campaigns.built import Built
from roofcast.data.schema import KEY_COLUMNS

BUILDERS: Final[dict[str, Callable[[Path], Built]]] = {
    "llm_pilot": build_llm_pilot,
}
"""By campaign: from the folder that holds every source's published files to what was built."""


def save(built: Built, folder: Path) -> None:
    """Write rows, quarantine and counts of a campaign; the same rows give the same bytes."""
    ordered = built.rows.sort_values(list(KEY_COLUMNS), kind="stable")
    is_blank = ordered.isna().all() | (ordered == "").all()
    _write(ordered.loc[:, ~is_blank].apply(lambda column: column.map(_cell)), folder / "rows.csv")
    quarantine = folder / "quarantine.csv"
    if len(built.quarantined):
        _write(built.quarantined.sort_values(["reference", "reason"], kind="stable"), quarantine)
    else:
        quarantine.unlink(missing_ok=True)
    _save_counts(folder / "campaign.toml", built)


def _write(table: pd.DataFrame, file: Path) -> None:
    file.write_text(table.to_csv(index=False, lineterminator="\n"), encoding="utf-8", newline="\n")


def _save_counts(file: Path, built: Built) -> None:
    text = file.read_text(encoding="utf-8")
    counts = {"n_read": built.n_read, "n_quarantined": len(built.quarantined), "n_row": len(built.rows)}
    for name, count in counts.items():
        text = re.sub(rf"^{name} = \d+$", f"{name} = {count}", text, flags=re.MULTILINE)
    file.write_text(text, encoding="utf-8", newline="\n")


def _cell(value: float | str) -> str:
    if isinstance(value, float):
        return "" if pd.isna(value) else repr(float(value)).removesuffix(".0")
    return str(value)


def main(arguments: Sequence[str] | None = None) -> None:
    """Build campaigns and write their rows."""
    parser = argparse.ArgumentParser(prog="roofcast.data.campaigns.build", description=__doc__)
    parser.add_argument("campaigns", nargs="*", metavar="CAMPAIGN", help="names; all of them by default")
    parser.add_argument("--raw", type=Path, required=True, help="folder that holds every source's published files")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the campaigns' folders")
    options = parser.parse_args(arguments)
    unknown = set(options.campaigns) - set(BUILDERS)
    if unknown:
        parser.error(f"no campaign is named {', '.join(sorted(unknown))}; there are {', '.join(BUILDERS)}")
    for name in options.campaigns or BUILDERS:
        built = BUILDERS[name](options.raw)
        save(built, options.out / name)
        print(f"{name}: {built.n_read} read, {len(built.quarantined)} quarantined, {len(built.rows)} rows written")


if __name__ == "__main__":
    main()
