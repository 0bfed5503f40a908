from __future__ import annotations

from collections.abc import Iterator

import pytest

from judge.protocols import fold_lines
from judge.scoreboard import Scoreboard
from tests.build_once import fit_once
from tests.training.judge.protocols.campaign_builders import a_campaign_board


@pytest.fixture(autouse=True, scope="session")
def in_this_process() -> Iterator[None]:
    """Fit folds in this process, where replaced predictors are known."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_lines, "N_PROCESS", 1)
        yield


@pytest.fixture(scope="session")
def campaign_board(tmp_path_factory: pytest.TempPathFactory) -> Scoreboard:
    """Return the scoreboard of a few rows of some campaigns by a predictor that fits nothing."""
    return fit_once(tmp_path_factory, "campaign-board", a_campaign_board)
