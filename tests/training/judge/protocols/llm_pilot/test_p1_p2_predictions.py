import numpy as np
import pandas as pd
import pytest

from judge.peers.llm_pilot_peers import load_tie_order
from judge.protocols.llm_pilot import p1_p2_predictions
from judge.protocols.llm_pilot.capacity import NO_PROFILE, Demand, LatencyTable
from judge.protocols.llm_pilot.p1_p2_predictions import LlmPilotPredictor
from roofcast.data.campaigns import load_campaigns
from roofcast.training.config import TrainingConfig

N_ASKED = 1


def medians(names: list[str]) -> pd.DataFrame:
    rows = load_campaigns(names)
    return rows[(rows["statistic"] == "p50") & rows["concurrency"].isin([1, 32])]


@pytest.fixture(scope="module")
def predictor() -> LlmPilotPredictor:
    """Return predictions of one LLM, by what is learnt of medians at two loads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(p1_p2_predictions, "load_campaigns", medians)
        made = LlmPilotPredictor(TrainingConfig(n_estimators=5, n_fold=2, calibrate=False))
    made._folds = made._folds[:N_ASKED]
    return made


def test_another_seed_gives_other_points(predictor: LlmPilotPredictor) -> None:
    first, second = predictor(0), predictor(1)
    assert first["model"].nunique() == second["model"].nunique() == N_ASKED
    assert (first[["nttft_s_per_token", "itl_s"]] > 0).all(axis=None)
    assert not first["itl_s"].equals(second["itl_s"])


def test_a_fold_is_asked_of_one_llm_with_the_lengths_of_the_others(predictor: LlmPilotPredictor) -> None:
    for fitted, asked in predictor._predictors(0):
        rows = predictor._data.measurements.loc[asked.index]
        assert len(set(rows["model"])) == 1
        assert not set(fitted.held_out_.index) & set(asked.index)
        own = predictor._data.X.loc[asked.index, "workload.n_input_token"]
        assert len(set(asked["workload.n_input_token"])) == 1 < own.nunique()


def test_the_rule_chooses_by_draws_alone(predictor: LlmPilotPredictor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(p1_p2_predictions, "N_DRAW", 20)
    model = predictor(0)["model"].iloc[0]
    profiles = load_tie_order()[model]
    hopeless = np.full((len(profiles), 8), np.inf)
    table = LatencyTable(model, profiles, np.arange(1, 9), hopeless, hopeless)
    lenient = (Demand(1e3, 1e3, 1),)
    choices = predictor.rule(0)(table, lenient, np.ones(len(profiles)))
    assert choices.profile[0] != NO_PROFILE
    assert choices.n_pod.tolist() == [1]
