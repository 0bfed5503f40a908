from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from judge.peers.llm_pilot_peers import LATENCY_COLUMNS, MEASURED_COLUMNS, PEERS, load_measured_points
from judge.protocols.llm_pilot.capacity import Demand
from judge.protocols.llm_pilot.p1_p2_llm_pilot import (
    DEMANDS,
    P1_DEMANDS,
    P2_DEMANDS,
    Score,
    decide,
    peer_predictions,
    score_decisions,
)
from roofcast.data.errors import SchemaError, UnknownNameError

PUBLISHED_P1 = {
    "LLM-Pilot": Score(0.8, 0.19859954617845506, 0.800699614549604),
    "PARIS": Score(0.8, 0.4993055555555556, 0.6159103043246129),
    "Selecta": Score(0.7, 0.5706349206349206, 0.5322557976106816),
    "PerfNetV2": Score(0.3, 0.0, 0.4615384615384615),
    "PerfNet": Score(0.3, 0.25, 0.4285714285714285),
    "RF": Score(0.7, 0.691234827264239, 0.4285152318034039),
    "Morphling": Score(0.5, 0.9, 0.1666666666666665),
}

P2 = {
    "LLM-Pilot": Score(0.537, 0.989, 0.021),
    "RF": Score(0.658, 0.858, 0.233),
    "PerfNet": Score(0.202, 0.087, 0.331),
    "PerfNetV2": Score(0.154, 0.225, 0.256),
    "PARIS": Score(0.644, 1.171, 0.0),
    "Selecta": Score(0.495, 1.601, 0.0),
    "Morphling": Score(0.389, 1.089, 0.0),
}


def peer_figures(method: str, protocol: str) -> dict[str, float]:
    return score_decisions(decide(peer_predictions(method), DEMANDS[protocol])).figures()


def perfect() -> pd.DataFrame:
    return load_measured_points().rename(columns=dict(zip(MEASURED_COLUMNS, LATENCY_COLUMNS, strict=True)))


@pytest.mark.parametrize("method", PEERS)
def test_p1_is_what_was_published(method: str) -> None:
    assert peer_figures(method, "P1") == pytest.approx(PUBLISHED_P1[method].figures(), abs=1e-9)


@pytest.mark.parametrize("method", PEERS)
def test_p2_of_the_peers(method: str) -> None:
    assert peer_figures(method, "P2") == pytest.approx(P2[method].figures(), abs=5e-4)


def test_p2_counts_the_pairs_that_some_profile_can_meet() -> None:
    assert len(P2_DEMANDS) == 90
    assert len(decide(perfect(), P2_DEMANDS)) == 885


@pytest.mark.parametrize("demands", [P1_DEMANDS, P2_DEMANDS])
def test_the_truth_itself_scores_one(demands: tuple[Demand, ...]) -> None:
    assert score_decisions(decide(perfect(), demands)) == Score(success=1.0, overspend=0.0, so=1.0)


def test_hopeless_predictions_recommend_nothing_and_fail() -> None:
    decisions = decide(perfect().assign(itl_s=float("nan")), P1_DEMANDS)
    assert set(decisions["profile"]) == {""}
    assert decisions["cost_usd_per_h"].isna().all()
    score = score_decisions(decisions)
    assert (score.success, score.so) == (0.0, 0.0)
    assert np.isnan(score.overspend)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda table: table.drop(columns="itl_s"), "itl_s: must be a column"),
        (lambda table: table.iloc[1:], "missing EleutherAI/gpt-neox-20b on 1 x H100 with 1 users"),
        (lambda table: table.iloc[[0, *range(len(table))]], "got twice EleutherAI/gpt-neox-20b on 1 x H100 with 1"),
    ],
    ids=["column", "point", "repeated point"],
)
def test_missing_columns_and_points_are_named(change: Callable[[pd.DataFrame], pd.DataFrame], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        decide(change(perfect()), P1_DEMANDS)


def test_an_unknown_peer_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'PerfNet'"):
        peer_predictions("perfnt")
