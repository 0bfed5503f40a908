"""LLM-Pilot's published benchmark: measurements, predictions of seven methods, and GPU prices.

The tables in `llm_pilot/` come from github.com/IBM/LLM-performance-prediction (CDLA-Permissive-2.0, whose text the
campaign `llm_pilot` has); `builders.campaigns.llm_pilot_predictions` writes them.
"""

import csv
import functools
from decimal import Decimal
from pathlib import Path
from typing import Final

import pandas as pd

FOLDER: Final = Path(__file__).parent / "llm_pilot"

PEERS: Final = ("LLM-Pilot", "RF", "PerfNet", "PerfNetV2", "PARIS", "Selecta", "Morphling")
"""Methods with published predictions, each made without the predicted LLM."""

MEASURED: Final = "measured"
"""Value of the column `method` of `peers.csv` for measurements."""

POINT_COLUMNS: Final = ("model", "profile", "users")
LATENCY_COLUMNS: Final = ("nttft_s_per_token", "itl_s")
MEASURED_COLUMNS: Final = ("measured_nttft_s_per_token", "measured_itl_s")


@functools.cache
def _rows() -> pd.DataFrame:
    return pd.read_csv(FOLDER / "peers.csv", converters=dict.fromkeys(LATENCY_COLUMNS, float))


def load_measured_points() -> pd.DataFrame:
    """Return the measured medians of the 528 points, two of which have no raw file.

    Returns
    -------
    One row a point with `POINT_COLUMNS` and `MEASURED_COLUMNS`; `profile` is such as ``4 x T4``, `users` the number
    of concurrent users, nTTFT the time to first token over the prompt's tokens

    Examples
    --------
    >>> points = load_measured_points()
    >>> len(points), points["model"].nunique(), points["profile"].nunique()
    (528, 10, 14)
    """
    rows = _rows()
    measured = rows[rows["method"] == MEASURED].drop(columns="method")
    names = dict(zip(LATENCY_COLUMNS, MEASURED_COLUMNS, strict=True))
    return measured.rename(columns=names).reset_index(drop=True)


def load_peer_predictions() -> pd.DataFrame:
    """Return the prediction of each peer for each point, with the measurement of the point.

    Predictions are as published: some of LLM-Pilot's nTTFT are negative, PerfNet's are mostly 0.

    Returns
    -------
    One row a method and point with `method`, `POINT_COLUMNS`, `LATENCY_COLUMNS` (predicted) and `MEASURED_COLUMNS`

    Examples
    --------
    >>> load_peer_predictions().groupby("method").size().unique().tolist()
    [528]
    """
    rows = _rows()
    predicted = rows[rows["method"] != MEASURED]
    return predicted.merge(load_measured_points(), on=list(POINT_COLUMNS), how="left", validate="many_to_one")


def load_profile_prices() -> dict[str, Decimal]:
    """Return the hourly price in USD by GPU profile, with the published digits and order.

    Examples
    --------
    >>> load_profile_prices()["1 x A100"]
    Decimal('4.09625')
    """
    with (FOLDER / "prices.csv").open(encoding="utf-8") as stream:
        return {row["profile"]: Decimal(row["price_usd_per_h"]) for row in csv.DictReader(stream)}


@functools.cache
def load_tie_order() -> dict[str, tuple[str, ...]]:
    """Return the GPU profiles of each LLM in the order that settles ties of predicted cost.

    It is the order of first appearance in the published table after an unstable quicksort by users. Of more than
    twenty orders tried, only this one gives P2's quoted figures for every peer; whether the authors used it is
    unknown. An unstable sort differs between machines, so the order is stored.

    Examples
    --------
    >>> load_tie_order()["google/flan-ul2"][:2]
    ('1 x H100', '4 x H100')
    """
    order = pd.read_csv(FOLDER / "tie_order.csv")
    return {str(model): tuple(profiles) for model, profiles in order.groupby("model", sort=False)["profile"]}
