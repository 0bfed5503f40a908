"""What became of each row of `silicon_sample.csv`: protocols that count published rows join on it.

Run ``python -m roofcast.data.campaigns.silicon_index --raw FOLDER`` after building the campaign.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.data.campaigns.build_silicon import HISTORY, SAMPLE, judge
from roofcast.data.campaigns.silicon_history import load_history
from roofcast.data.campaigns.silicon_source import load_source_rows

FILE: Final = "rows_index.csv"
INDEX_COLUMNS: Final = ("row", "id", "mode", "measured_in", "mtp", "fault", "set_aside")


def build_index(root: Path) -> pd.DataFrame:
    """Return one line for each published row, with the columns `INDEX_COLUMNS`.

    Returns
    -------
    shape (n_row, 7)
        `measured_in` is the `row` whose measurement the campaign holds for it, `mtp` is yes, no or unsure, `fault` is
        the rule that marks it as faulty, `set_aside` why it is no measurement of its own. Where `set_aside` is
        ``worker_count_unknown``, the campaign holds no measurement.
    """
    verdicts = judge(load_source_rows(root / SAMPLE), load_history(root / HISTORY))
    records = [
        (v.row.number, v.row.id, v.row.cells["mode"], v.original, v.mtp, v.fault, v.set_aside) for v in verdicts
    ]
    return pd.DataFrame(records, columns=list(INDEX_COLUMNS))


def load_silicon_index() -> pd.DataFrame:
    """Return the shipped index; texts are blank where nothing is to say.

    Examples
    --------
    >>> int((load_silicon_index()["mode"] == "agg").sum())
    3619
    """
    text = (resources.files(__package__) / "silicon" / FILE).read_text(encoding="utf-8")
    table = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    return table.astype({"row": int, "measured_in": int})


def source_row(note: str) -> int:
    """Return the row of the source that a measurement's note names.

    Examples
    --------
    >>> source_row("row 17; faulty: placeholder_zero")
    17
    """
    return int(note.partition(";")[0].removeprefix("row "))


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the index and write it beside the campaign's rows."""
    parser = argparse.ArgumentParser(prog="roofcast.data.campaigns.silicon_index", description=__doc__)
    parser.add_argument("--raw", type=Path, required=True, help="folder that holds every source's published files")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "silicon", help="folder to write into")
    options = parser.parse_args(arguments)
    text = build_index(options.raw).to_csv(index=False, lineterminator="\n")
    (options.out / FILE).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
