"""Convert LLM-Pilot's published predictions and prices to `peers.csv` and `prices.csv` of the judge.

Usage: ``python -m builders.campaigns.llm_pilot_predictions SOURCE``, where `SOURCE` holds ``prices.csv`` and
``published_predictions/expected_predictions_<method>.csv`` of github.com/IBM/LLM-performance-prediction.
"""

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final

from judge.peers.llm_pilot_peers import FOLDER, LATENCY_COLUMNS, MEASURED, PEERS, POINT_COLUMNS
from roofcast.data.errors import SchemaError
from roofcast.data.units import ms_from_s

MODEL_IDS: Final = {"llama-7b": "huggyllama/llama-7b", "llama-13b": "huggyllama/llama-13b"}
"""Catalogue names of LLMs published under a short name."""

_MS_PER_S: Final = Decimal(ms_from_s(1.0))
_SOURCE_COLUMNS: Final = ("median_nttft", "median_itl")

Row = tuple[str, ...]


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
    published = {method: list(_published(source, method)) for method in PEERS}
    measured = _points(published[PEERS[0]], prefix="")
    rows = [(MEASURED, *point) for point in measured]
    for method, records in published.items():
        if _points(records, prefix="") != measured:
            raise SchemaError("median_nttft", f"must be as in the file of {PEERS[0]}", f"file of {method}")
        rows += [(method, *point) for point in _points(records, prefix="prediction_")]
    _write(target / "peers.csv", ("method", *POINT_COLUMNS, *LATENCY_COLUMNS), rows)
    with (source / "prices.csv").open(encoding="utf-8") as stream:
        prices = [(row["GPU"], row["price"]) for row in csv.DictReader(stream)]
    _write(target / "prices.csv", ("profile", "price_usd_per_h"), prices)


def _published(source: Path, method: str) -> Iterator[dict[str, str]]:
    path = source / "published_predictions" / f"expected_predictions_{method}.csv"
    with path.open(encoding="utf-8") as stream:
        yield from csv.DictReader(stream)


def _points(records: Iterable[dict[str, str]], prefix: str) -> list[Row]:
    return [
        (
            MODEL_IDS.get(record["model"], record["model"]),
            record["gpu"],
            record["num_users"],
            *(s_text_from_ms(record[prefix + column]) for column in _SOURCE_COLUMNS),
        )
        for record in records
    ]


def _write(path: Path, header: Row, rows: Sequence[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    build_peers(Path(sys.argv[1]), FOLDER)
