"""What is doubtful in imported rows: blank or unknown names, failed runs and requests."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from roofcast.data.campaigns import CAMPAIGNS
from roofcast.data.errors import near_misses
from roofcast.features.columns import ENGINES
from roofcast.serving.counts import count_text


def count_failed_runs(table: pd.DataFrame) -> int:
    """Return the number of runs without an outcome, which have one row each."""
    return int((table["status"] != "ok").sum())


def import_warnings(table: pd.DataFrame) -> Iterator[str]:
    """Yield what is doubtful in validated measurements."""
    n_blank = int((table["engine"] == "").sum())
    if n_blank:
        cure = "set the engine that was measured, such as --set engine=vllm; rows stored without it stay stored"
        yield f"engine: is blank in {n_blank} of {count_text(len(table), 'row')}; {cure}"
    for name in sorted(set(table["engine"]) - {*ENGINES, ""}):
        near = near_misses(name, ENGINES, 1)
        question = f"; did you mean {near[0]}?" if near else ""
        unknown = f"{name!r} is not an engine of the shipped measurements, and is stored under this name"
        yield f"engine: {unknown}{question}"
    for name in sorted(set(table["campaign"]) & set(CAMPAIGNS)):
        yield f"campaign: {name!r} is also the name of a shipped campaign; choose another name with --campaign"
    yield from _failures(table)


def _failures(table: pd.DataFrame) -> Iterator[str]:
    n_failed_run = count_failed_runs(table)
    if n_failed_run:
        kinds = ", ".join(f"{n} {status}" for status, n in table["status"].value_counts().items() if status != "ok")
        yield f"status: {count_text(n_failed_run, 'failed run')} ({kinds}), without an outcome"
    done = table[(table["status"] == "ok") & (table["n_failed"] > 0)]
    if len(done):
        share = float((done["n_failed"] / done["n_request"]).max())
        most: str = "" if math.isnan(share) else f", of a run up to {share:.1%}"
        yield f"n_failed: {count_text(len(done), 'row')} of runs with failed requests{most}"
