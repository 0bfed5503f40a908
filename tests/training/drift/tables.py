"""Measurements as the store returns them, made by hand."""

from typing import Any

import pandas as pd

from roofcast.training.drift.repeats import find_repeats
from tests.training.builders import measurements

RUN = {"statistic": "mean", "engine": "vllm", "ttft_s": None, "campaign": "nightly"}


def imported(*rows: dict[str, Any]) -> pd.DataFrame:
    """Return measurements with their imports; `of` is the import's number, `uploader` its key."""
    cells = [{name: value for name, value in row.items() if name not in {"of", "uploader"}} for row in rows]
    number = pd.Series([row.get("of", 0) for row in rows])
    return measurements(*({**RUN, **row} for row in cells)).assign(
        import_id=number.map("import {}".format),
        uploader=[row.get("uploader", "") for row in rows],
        added_at=pd.Timestamp("2026-11-01", tz="UTC") + pd.to_timedelta(number, unit="D"),
    )


def imported_rows(after: float = 0.0175) -> pd.DataFrame:
    """Return a run, and the same run of a newer engine a week later."""
    first = {"tpot_s": 0.0175, "date": "2026-11-15", "engine_version": "0.11.0"}
    return imported(first, {"tpot_s": after, "date": "2026-11-23", "engine_version": "0.11.1", "of": 1})


def pairs_of(rows: pd.DataFrame, *, is_new: bool = True) -> pd.DataFrame:
    """Return the repeats of the rows of the last import, or of none."""
    return find_repeats(rows, (rows["import_id"] == rows["import_id"].iloc[-1]) & is_new)
