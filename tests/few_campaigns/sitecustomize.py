"""Few shipped measurements in each Python process that has this folder on its path: retrainings take seconds."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from roofcast.data import campaigns

if TYPE_CHECKING:
    import pandas as pd

MODELS: Final = ("Salesforce/codegen2-16B", "bigcode/starcoder", "huggyllama/llama-13b")

_load = campaigns.load_campaigns


@functools.cache
def _few_rows() -> pd.DataFrame:
    rows = _load(["llm_pilot"])
    return rows[rows["model"].isin(MODELS) & (rows["statistic"] == "p50")].reset_index(drop=True)


def _load_few(*_: object) -> pd.DataFrame:
    return _few_rows()


campaigns.load_campaigns = _load_few  # type: ignore[misc, assignment]  # no other process learns from few
