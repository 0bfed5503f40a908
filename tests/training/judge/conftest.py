from collections.abc import Iterator

import pandas as pd
import pytest

from judge.protocols import fold_lines
from judge.protocols.campaign_rows import CampaignRows
from judge.scoreboard import Scoreboard
from tests.build_once import fit_once
from tests.training.judge.protocols.campaign_builders import GuessingPredictor, a_campaign_board, a_few_campaign_rows


@pytest.fixture(autouse=True, scope="session")
def in_this_process() -> Iterator[None]:
    """Fit folds in this process, where replaced predictors are known."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_lines, "N_PROCESS", 1)
        yield


@pytest.fixture(scope="session")
def rows() -> CampaignRows:
    return a_few_campaign_rows()


@pytest.fixture(scope="session")
def board(tmp_path_factory: pytest.TempPathFactory) -> Scoreboard:
    """Return the scoreboard of a few rows of some campaigns by a predictor that fits nothing."""
    return fit_once(tmp_path_factory, "campaign-board", a_campaign_board)


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[pd.DataFrame]:
    """Return the descriptors that predictors which fit nothing are fitted to from now on."""
    monkeypatch.setattr(fold_lines, "RoofcastPredictor", GuessingPredictor)
    GuessingPredictor.fitted.clear()
    return GuessingPredictor.fitted
