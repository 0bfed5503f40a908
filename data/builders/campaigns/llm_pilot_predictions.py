"""Convert LLM-Pilot's published predictions and prices to `peers.csv` and `prices.csv` of the judge.

Usage: ``python -m builders.campaigns.llm_pilot_predictions SOURCE``, where `SOURCE` holds ``prices.csv`` and
``published_predictions/expected_predictions_<method>.csv`` of github.com/IBM/LLM-performance-prediction.
"""

import sys
from decimal import Decimal
from pathlib import Path
from typing import Final

import pandas as pd

from judge.peers.llm_pilot_peers import FOLDER, LATENCY_COLUMNS, MEASURED, PEERS, POINT_COLUMNS
from roofcast.data.errors import SchemaError
from roofcast.data.units import ms_from_s

MODEL_IDS: Final = {"llama-7b": "huggyllama/llama-7b", "llama-13b": "huggyllama/llama-13b"}
"""Catalogue names of LLMs published under a short name."""

_MS_PER_S: Final = Decimal(ms_from_s(1.0))
_SOURCE_COLUMNS: Final = ("median_nttft", "median_itl")


def s_text_from_ms(text: str) -> str:
    """Convert a number of milliseconds to seconds without losing a digit.

    Examples
    --------
    >>> s_text_from_ms("0.5294117647058824"), s_text_from_ms("19.0"), s_text_from_ms("0.0")
    ('0.0005294117647058824', '0.019', '0')
    """
    return f"{(Decimal(text) / _MS_PER_S).normalize():f}"


def build_peers(source: Path, target: Path) -> None:
    """Write ``peers.csv`` and ``prices.csv`` into the folder `target`.

    Raises `SchemaError` if two published files disagree on the measured medians.
    """
    published = {
        method: _read(source / "published_predictions" / f"expected_predictions_{method}.csv") for method in PEERS
    }
    points = [_points(published[PEERS[0]], MEASURED, prefix="")]
    for method, table in published.items():
        if not _points(table, MEASURED, prefix="").equals(points[0]):
            raise SchemaError("median_nttft", f"must be as in the file of {PEERS[0]}", f"file of {method}")
        points.append(_points(table, method, prefix="prediction_"))
    _write(pd.concat(points), target / "peers.csv")
    prices = _read(source / "prices.csv")[["GPU", "price"]]
    _write(prices.set_axis(["profile", "price_usd_per_h"], axis=1), target / "prices.csv")


def _points(table: pd.DataFrame, method: str, prefix: str) -> pd.DataFrame:
    places = (table["model"].replace(MODEL_IDS), table["gpu"], table["num_users"])
    medians = (table[prefix + column].map(s_text_from_ms) for column in _SOURCE_COLUMNS)
    columns = dict(zip((*POINT_COLUMNS, *LATENCY_COLUMNS), (*places, *medians), strict=True))
    return pd.DataFrame({"method": method, **columns})


def _read(file: Path) -> pd.DataFrame:
    return pd.read_csv(file, dtype=str)


def _write(table: pd.DataFrame, file: Path) -> None:
    table.to_csv(file, index=False, lineterminator="\n")


if __name__ == "__main__":
    build_peers(Path(sys.argv[1]), FOLDER)
