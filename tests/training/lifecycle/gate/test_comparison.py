import math

import pandas as pd
import pytest

from roofcast.training.lifecycle.gate.comparison import compare, held_out_error
from roofcast.training.lifecycle.gate.slice_bootstrap import TOLERANCE

NAN = float("nan")
GROUPS = pd.Series(["a", "a", "b", "b"])
SLICES = pd.DataFrame({"lineage": GROUPS, "cell": range(4), "accelerator": "h100", "stack": "lab"})
Y = pd.DataFrame({"ttft_s": [1.0, 2.0, 3.0, 4.0], "tpot_s": [0.1, 0.2, 0.3, 0.4]})


def predictions_with_error(log_error: float) -> pd.DataFrame:
    return Y.mul(math.exp(log_error))


@pytest.mark.parametrize(
    ("candidate", "champion", "promoted"),
    [
        (0.1, 0.2, True),
        (0.2, 0.2, True),
        (0.2 * (1 + 0.9 * TOLERANCE), 0.2, True),
        (0.2 * (1 + 1.1 * TOLERANCE), 0.2, False),
        (0.4, 0.2, False),
        (-0.4, 0.2, False),
        (0.0, 0.0, True),
    ],
)
def test_a_candidate_is_promoted_unless_it_is_worse(candidate: float, champion: float, promoted: bool) -> None:
    decision = compare(Y, predictions_with_error(candidate), predictions_with_error(champion), SLICES)
    assert decision.promoted is promoted
    assert decision.candidate == pytest.approx(abs(candidate))
    assert decision.champion == pytest.approx(abs(champion))
    assert ("not worse" in decision.reason) is promoted


def test_the_first_candidate_is_promoted() -> None:
    decision = compare(Y, predictions_with_error(0.3), None, SLICES)
    assert decision.promoted
    assert decision.champion is None
    assert decision.reason == "there was no champion"
    assert compare(Y, predictions_with_error(0.3), None, SLICES, no_champion="it was lost").reason == "it was lost"


def test_lineages_and_metrics_have_equal_weights() -> None:
    predicted = Y.assign(ttft_s=[math.e, 2.0, 3.0, 4.0])
    assert held_out_error(Y, predicted, GROUPS) == pytest.approx(0.5 / 2 / 2)
    few = GROUPS.where(GROUPS.index != 3, "a")
    assert held_out_error(Y, predicted, few) == pytest.approx((1 / 3) / 2 / 2)


def test_a_metric_that_the_champion_lacks_is_not_compared() -> None:
    candidate = predictions_with_error(0.1).assign(tpot_s=Y["tpot_s"] * 100)
    decision = compare(Y, candidate, predictions_with_error(0.1)[["ttft_s"]], SLICES)
    assert decision.promoted
    assert decision.candidate == pytest.approx(0.1)


def test_both_are_compared_on_the_rows_that_the_champion_predicts() -> None:
    champion = predictions_with_error(0.1).mask(GROUPS == "b")
    candidate = predictions_with_error(0.1).where(GROUPS == "a", Y * 50)
    decision = compare(Y, candidate, champion, SLICES)
    assert decision.promoted
    assert decision.candidate == pytest.approx(decision.champion) == pytest.approx(0.1)


@pytest.mark.parametrize("drop", ["row", "metric"])
def test_a_candidate_that_lacks_a_value_of_the_champion_is_refused(drop: str) -> None:
    candidate = predictions_with_error(0.0)
    candidate = candidate.mask(GROUPS == "b") if drop == "row" else candidate[["ttft_s"]]
    decision = compare(Y, candidate, predictions_with_error(0.5), SLICES)
    assert not decision.promoted
    assert decision.reason == "the candidate lacks 4 values that the champion predicts"


def test_a_champion_without_predictions_is_replaced() -> None:
    decision = compare(Y, predictions_with_error(0.5), Y * NAN, SLICES)
    assert decision.promoted
    assert decision.champion is None
    assert "predicts no measured value" in decision.reason


@pytest.mark.parametrize("champion", [None, predictions_with_error(0.5)])
def test_a_candidate_without_predictions_is_never_promoted(champion: pd.DataFrame | None) -> None:
    assert not compare(Y, Y * NAN, champion, SLICES).promoted
