import numpy as np
import pandas as pd
import pytest

from judge.protocols.campaign_rows import CampaignRows
from research import campaign_value
from research.campaign_value import METRICS, campaign_values, page

ROWS = CampaignRows(
    pd.DataFrame({"campaign": ["new", "old", "old", "old"], "stack": ["n", "a", "b", "b"]}),
    pd.DataFrame(index=range(4)),
    pd.DataFrame(index=range(4)),
    pd.Series(["x"] * 4),
)
ERRORS = {None: [0.9, 0.1, 0.2, 0.3], "new": [0.0, 0.2, 0.2, 0.5]}


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """Return the values of the campaign "new", of models whose errors are `ERRORS`."""

    def errors(_rows: CampaignRows, _train: object, test: np.ndarray, case: str | None) -> pd.DataFrame:
        return pd.DataFrame(dict.fromkeys(METRICS, np.array(ERRORS[case])[test]), index=test)

    monkeypatch.setattr(campaign_value, "_held_out_errors", errors)
    return campaign_values(ROWS, ("new",))


def test_a_campaign_is_judged_on_the_rows_of_the_others(values: pd.DataFrame) -> None:
    new = values[values["metric"] == "tpot_s"].iloc[0]
    assert (new["n_row"], new["change"]) == (3, 0.0)
    assert new["low"] <= new["high"] <= 0.0
    assert new["low"] == pytest.approx(-0.1)


def test_the_page_has_changes_and_their_intervals(values: pd.DataFrame) -> None:
    line = page(values, ROWS.owners, ROWS.measurements).splitlines()[-1]
    assert line.startswith("| new | 1 | 1 | +0.0000 (-0.1000 to ")
