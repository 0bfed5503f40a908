"""Budget of a candidate: the size of its bundle, and the processor time of its predictions.

The shipped predictor is the measure, not the champion, so that candidate after candidate cannot grow a little.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pandas as pd

from roofcast.data.units import ms_from_s
from roofcast.training.lifecycle.bundles.bundle import FILE_NAME, ModelBundle
from roofcast.training.lifecycle.shipped import load_shipped

MAX_RATIO: Final = 2.0
"""Size and time of a candidate over those of the shipped predictor."""

N_QUERY: Final = 100
N_REPEAT: Final = 5


def over_budget(candidate: ModelBundle, X: pd.DataFrame, reference: ModelBundle | None = None) -> str:
    """Return what a candidate takes too much of; blank if nothing.

    Parameters
    ----------
    X : shape (n_row, n_descriptor)
        Queries; at most `N_QUERY` of them are predicted.
    reference
        Measure of the budget; the shipped predictor by default. Without any there is no budget.
    """
    reference = reference or load_shipped()
    if reference is None:
        return ""
    sizes = [_n_byte(bundle) for bundle in (candidate, reference)]
    if sizes[0] > MAX_RATIO * sizes[1]:
        mine, other = (f"{n:,} bytes" for n in sizes)
        return f"its bundle has {mine}, more than {MAX_RATIO:g} times the {other} of the shipped predictor"
    queries = X.iloc[:: -(-len(X) // N_QUERY)]
    rounds = [[_cpu_s(bundle, queries) for bundle in (candidate, reference)] for _ in range(N_REPEAT)]
    mine_s, other_s = map(min, zip(*rounds, strict=True))
    if mine_s > MAX_RATIO * other_s:
        mine, other = (f"{ms_from_s(time_s):.0f} ms" for time_s in (mine_s, other_s))
        times = f"{mine} of processor time for {len(queries)} predictions"
        return f"it takes {times}, more than {MAX_RATIO:g} times the {other} of the shipped predictor"
    return ""


def _n_byte(bundle: ModelBundle) -> int:
    with TemporaryDirectory() as folder:
        bundle.save(Path(folder) / FILE_NAME)
        return (Path(folder) / FILE_NAME).stat().st_size


def _cpu_s(bundle: ModelBundle, queries: pd.DataFrame) -> float:
    start = time.process_time()
    bundle.predict(queries, [""] * len(queries))
    return time.process_time() - start
