"""The campaign `silicon` as P3 judges it: an index of its published rows, and aiconfigurator's predictions of them.

`builders.campaigns.silicon.index` writes the index, `benchmarks/peers/aiconfigurator_run.py` the predictions;
`silicon/peer_aiconfigurator.toml` has version, date, licence and settings of that run.
"""

import functools
from pathlib import Path
from typing import Final

import pandas as pd

FOLDER: Final = Path(__file__).parent / "silicon"
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
    """Return the measurement or rejection of each row of `silicon_sample.csv`; protocols that count them join on it.

    Examples
    --------
    >>> int((load_silicon_index()["mode"] == "agg").sum())
    3619
    """
    table = pd.read_csv(FOLDER / "rows_index.csv", dtype=str, keep_default_na=False)
    return table.astype({"row": int, "measured_in": int})


def source_row(note: str) -> int:
    """Return the source row in a measurement's note.

    Examples
    --------
    >>> source_row("row 17; faulty: placeholder_zero")
    17
    """
    return int(note.partition(";")[0].removeprefix("row "))


@functools.cache
def load_aiconfigurator_answers() -> pd.DataFrame:
    """Return the recorded predictions of aiconfigurator for the rows of protocol P3.

    Returns
    -------
    One row a call, with the index `row` of `rows_index.csv`: the arguments, `ttft_s` and `tpot_s` (NaN without an
    answer), `call_s` (wall time of the call), `status` and `reason`

    Examples
    --------
    >>> answers = load_aiconfigurator_answers()
    >>> set(answers.loc[answers["status"] != "ok", "ttft_s"].isna())
    {True}
    """
    return pd.read_csv(FOLDER / "peer_aiconfigurator.csv", index_col="row")
