"""Index of the published rows of `silicon_sample.csv`: the measurement or rejection of each.

Protocols that count published rows join on it. The builder of the campaign writes it.
"""

from __future__ import annotations

import io
from importlib import resources
from typing import Final

import pandas as pd

FILE: Final = "rows_index.csv"
INDEX_COLUMNS: Final = ("row", "id", "mode", "measured_in", "mtp", "fault", "set_aside")

FAULTS: Final = {
    "disaggregated_total": "called aggregated, but its devices are prefill and decode workers added up",
    "placeholder_zero": "parallelism holds the placeholder 0, so what ran is unknown",
    "never_configured": "more requests in flight than the public configurations ever had for its question",
    "release_candidate": "DeepSeek-R1 in NVFP4 under the first release candidate of TensorRT-LLM 1.3",
    "no_concurrency": "Qwen3-32B in FP4 on GB200 without a concurrency; the batch stands in for it",
}
"""Faults of kept rows, which a protocol may include or exclude."""


def load_silicon_index() -> pd.DataFrame:
    """Return the shipped index.

    Examples
    --------
    >>> int((load_silicon_index()["mode"] == "agg").sum())
    3619
    """
    text = (resources.files(__package__) / "silicon" / FILE).read_text(encoding="utf-8")
    table = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    return table.astype({"row": int, "measured_in": int})


def source_row(note: str) -> int:
    """Return the source row in a measurement's note.

    Examples
    --------
    >>> source_row("row 17; faulty: placeholder_zero")
    17
    """
    return int(note.partition(";")[0].removeprefix("row "))
