from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from judge.protocols.p10_reliability import (
    DECISION,
    FACTORS,
    decision_figures,
    p_below,
    reliability_figures,
    reliability_parts,
    rent,
    state_limits,
)
from judge.protocols.regret import least_prices
from judge.scoreboard import Scoreboard, figure_rows

NAN = float("nan")


def a_dump(measured: list[float], predicted: list[float], log_sd: float = 0.5, **columns: object) -> pd.DataFrame:
    """Return lines of TTFT and TPOT whose predictive distributions are log-normal."""
    bounds = {
        f"{side}_{level}": np.array(predicted) * np.exp(sign * log_sd * norm.ppf(0.5 + level / 200))
        for level in (50, 80, 90)
        for side, sign in (("low", -1), ("high", 1))
    }
    keys = {
        "stack": "a", "model": "m", "statistic": "mean", "n_input_token": 1.0, "n_output_token": 1.0, "rule": "",
        "load": "closed_loop", "concurrency": 8.0, "request_rate": NAN, "accelerator": "x", "n_accelerator": 1.0,
        "fold": 1, "row": np.arange(len(measured)), "measured": measured, "predicted": predicted,
    }  # fmt: skip
    return pd.concat([pd.DataFrame(keys | bounds | columns | {"metric": metric}) for metric in ("ttft", "tpot")])


def test_probabilities_are_those_of_the_distribution() -> None:
    limits = np.geomspace(0.1, 10, 9)
    dump = a_dump([1.0] * 9, [1.0] * 9)
    said = p_below(dump[dump["metric"] == "tpot"], limits)
    assert said == pytest.approx(norm.cdf(np.log(limits) / 0.5))


def test_a_bound_that_clips_quantiles_leaves_nothing_below_it() -> None:
    dump = a_dump([1.0] * 2, [1.0] * 2).assign(low_90=0.8, low_80=0.8, low_50=0.8)
    assert p_below(dump[dump["metric"] == "tpot"], np.array([0.79, 1.0])) == pytest.approx([0.0, 0.5])


@pytest.mark.parametrize(("said_sd", "gap"), [(0.5, 0.0), (1.0, 0.15)])
def test_an_ideal_predictor_has_no_gap_and_a_timid_one_has(said_sd: float, gap: float) -> None:
    rng = np.random.default_rng(0)
    truth = np.exp(rng.normal(0, 0.5, 20_000))
    limits = state_limits(a_dump(list(truth), [1.0] * len(truth), said_sd))
    assert len(limits) == 2 * len(truth) * len(FACTORS)
    candidates = pd.DataFrame([dict.fromkeys(DECISION, 0) | {"cost_usd_per_h": 1.0, "said": 0.9, "happened": True}])
    figures = reliability_figures(limits, candidates)
    for metric in ("ttft", "tpot"):
        scores = figures[metric]
        assert isinstance(scores, dict)
        assert scores["largest_gap"] == pytest.approx(gap, abs=0.03)
    parts = reliability_parts(limits)
    assert parts["n"].sum() == len(limits)
    assert set(parts.columns) == {"metric", "decile", "n", "said", "happened", "gap"}


def test_a_decile_of_few_limits_has_no_gap() -> None:
    candidates = pd.DataFrame([dict.fromkeys(DECISION, 0) | {"cost_usd_per_h": 1.0, "said": 0.9, "happened": True}])
    said = [0.95] * 100 + [0.05] * 99
    figures: Any = reliability_figures(pd.DataFrame({"metric": "tpot", "said": said, "happened": True}), candidates)
    assert figures["tpot"]["largest_gap"] == pytest.approx(0.05)


def test_the_cheapest_at_the_confidence_is_rented() -> None:
    # y serves at twice the price what x misses by prediction; both meet three times the median in truth
    dump = a_dump([1.0, 1.0], [6.0, 1.0], accelerator=["x", "y"])
    candidates = rent(dump, {"x": 1.0, "y": 2.0})
    lenient = candidates[candidates["factor"] == max(FACTORS)]
    assert lenient["happened"].all()
    assert decision_figures(lenient) == {"overspend_80": 1.0, "success_80": 1.0, "answered_80": 1.0, "n_decision": 1}
    assert (candidates["factor"] >= 1).all()  # no candidate meets less


def test_one_kind_of_hardware_or_no_price_is_no_decision() -> None:
    dump = a_dump([1.0, 1.0], [1.0, 1.0], accelerator=["x", "y"])
    assert rent(dump, {"x": 1.0}).empty
    assert rent(dump.assign(accelerator="x"), {"x": 1.0}).empty


def test_the_scoreboard_has_metrics_and_decisions(board: Scoreboard) -> None:
    dump = board.results["P7"].tables["P7"]
    limits, candidates = state_limits(dump), rent(dump, least_prices())
    figures = reliability_figures(limits, candidates)
    assert set(figures) >= {"ttft", "tpot", "overspend_80", "success_80"}
    rows = {row["of"]: row for row in figure_rows("P10", figures)}
    assert set(rows) == {"ttft", "tpot", "decisions"}
    of_tpot = limits[limits["metric"] == "tpot"]
    assert rows["tpot"]["brier"] == pytest.approx(((of_tpot["said"] - of_tpot["happened"]) ** 2).mean())
    assert "overspend_80" in board.results["P10"].figures  # of the competent operators among these rows, if any
