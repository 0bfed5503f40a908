"""Budget of a candidate: the size of its bundle, and the processor time of its predictions.

The shipped predictor is the measure, not the champion, so that candidate after candidate cannot grow a little.
"""

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from roofcast.data.units import ms_from_s
from roofcast.features.queries import RowIndex
from roofcast.training.lifecycle.bundles.bundle_io import FILE_NAME, Bundle
from roofcast.training.lifecycle.bundles.bundle_types import B

MAX_RATIO: Final = 2.0
"""Size and time of a candidate over those of the shipped predictor."""

N_QUERY: Final = 100
N_REPEAT: Final = 5


def query_rows(n_row: int) -> RowIndex:
    """Return the indices of at most `N_QUERY` rows, evenly spread: the queries of `over_budget`.

    Examples
    --------
    >>> query_rows(250).tolist()[:4]
    [0, 3, 6, 9]
    """
    return np.arange(0, n_row, max(1, -(-n_row // N_QUERY)))


def over_budget(candidate: B, shipped: B | None, predict: Callable[[B], object], n_query: int) -> str:
    """Return what a candidate takes too much of; blank if nothing, or if there is no shipped predictor.

    `predict`: predicts `n_query` queries by a bundle.
    """
    if shipped is None:
        return ""
    sizes = [_n_byte(bundle) for bundle in (candidate, shipped)]
    if sizes[0] > MAX_RATIO * sizes[1]:
        mine, other = (f"{n:,} bytes" for n in sizes)
        return f"its bundle has {mine}, more than {MAX_RATIO:g} times the {other} of the shipped predictor"
    rounds = [[_cpu_s(predict, bundle) for bundle in (candidate, shipped)] for _ in range(N_REPEAT)]
    mine_s, other_s = map(min, zip(*rounds, strict=True))
    if mine_s > MAX_RATIO * other_s:
        mine, other = (f"{ms_from_s(time_s):.0f} ms" for time_s in (mine_s, other_s))
        times = f"{mine} of processor time for {n_query} predictions"
        return f"it takes {times}, more than {MAX_RATIO:g} times the {other} of the shipped predictor"
    return ""


def _n_byte(bundle: Bundle) -> int:
    with TemporaryDirectory() as folder:
        bundle.save(Path(folder) / FILE_NAME)
        return (Path(folder) / FILE_NAME).stat().st_size


def _cpu_s(predict: Callable[[B], object], bundle: B) -> float:
    start = time.process_time()
    predict(bundle)
    return time.process_time() - start
