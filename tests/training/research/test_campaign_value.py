from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from research import campaign_value
from research.campaign_value import METRICS, SEED, campaign_values, page
from roofcast.training.evaluation.protocols.campaign_rows import CampaignRows

ROWS = CampaignRows(
    pd.DataFrame({"campaign": ["new", "old", "old", "old"], "stack": ["n", "a", "b", "b"]}),
    pd.DataFrame(index=range(4)),
    pd.DataFrame(index=range(4)),
    pd.Series(["x"] * 4),
)
ERRORS = {None: [0.9, 0.1, 0.2, 0.3], "new": [0.0, 0.2, 0.2, 0.5], SEED: [0.9, 0.1, 0.2, 0.3]}


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """Return the values of the campaign "new", of models whose errors are `ERRORS`."""

    def errors(_rows: CampaignRows, _train: object, test: np.ndarray, case: str | None) -> pd.DataFrame:
        return pd.DataFrame(dict.fromkeys(METRICS, np.array(ERRORS[case])[test]), index=test)

    monkeypatch.setattr(campaign_value, "_held_out_errors", errors)
    return campaign_values(ROWS, ("new",))


def test_a_campaign_is_judged_on_the_rows_of_the_others(values: pd.DataFrame) -> None:
    new = values[values["campaign"] == "new"].iloc[0]
    assert (new["n_row"], new["with"], new["without"], new["owners"]) == (3, 0.2, 0.2, 1.0)


def test_the_page_ends_with_what_is_chance(values: pd.DataFrame) -> None:
    lines = page(values, ROWS.owners, ROWS.measurements).splitlines()
    assert lines[-2].startswith("| new | 1 | 1 | +0.0000 | 1.00 |")
    assert lines[-1].startswith(f"| {SEED} |  |  | +0.0000 | nan |")
