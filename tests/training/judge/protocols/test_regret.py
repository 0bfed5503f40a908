import numpy as np
import pandas as pd
import pytest

from judge.protocols.fold_lines import DERIVED
from judge.protocols.p4_p5_campaigns import FAULTY
from judge.protocols.regret import (
    decision_candidates,
    least_prices,
    regret_figures,
    regrets,
    without_price,
)
from judge.scoreboard import Scoreboard

NAN = float("nan")
PRICES = {"slow": 1.0, "fast": 3.0}


def a_line(accelerator: str, measured: float, predicted: float, **changes: object) -> dict[str, object]:
    """Return a line of P4's dump."""
    return {
        "campaign": "ours", "model": "m", "lineage": "m", "statistic": "mean", "n_input_token": 100.0,
        "n_output_token": 10.0, "load": "closed_loop", "concurrency": 8.0, "request_rate": NAN, "rule": "",
        "accelerator": accelerator, "n_accelerator": 1.0, "engine": "vllm", "weight_precision": "fp8",
        "question": 1, "metric": "output_throughput", "measured": measured, "predicted": predicted,
    } | changes  # fmt: skip


def decided(*lines: dict[str, object]) -> pd.DataFrame:
    return regrets(decision_candidates(pd.DataFrame(list(lines)), PRICES))


def test_the_regret_is_what_the_seemingly_cheapest_costs_more() -> None:
    # truly 1 / 100 and 3 / 200 of a dollar-hour a token; predicted 1 / 100 and 3 / 400
    table = decided(a_line("slow", 100, 100), a_line("fast", 200, 400))
    assert table["regret"].tolist() == pytest.approx([0.5])
    assert table["n_candidate"].tolist() == [2]
    assert decided(a_line("slow", 100, 100), a_line("fast", 200, 250))["regret"].tolist() == [0.0]


def test_a_count_is_a_choice_and_costs_as_many_accelerators() -> None:
    table = decided(a_line("slow", 100, 100), a_line("slow", 150, 250, n_accelerator=2.0))
    assert table["regret"].tolist() == pytest.approx([2 / 150 * 100 - 1])


def test_one_accelerator_in_two_configurations_is_no_decision() -> None:
    assert decided(a_line("slow", 100, 100), a_line("slow", 200, 100, engine="sglang", question=2)).empty


@pytest.mark.parametrize(
    "change",
    [{"n_output_token": 20.0}, {"concurrency": 16.0}, {"model": "n"}, {"campaign": "theirs"}, {"load": "offline"}],
)
def test_another_question_is_no_alternative(change: dict[str, object]) -> None:
    assert decided(a_line("slow", 100, 100), a_line("fast", 200, 400, **change)).empty


@pytest.mark.parametrize(
    "change", [{"rule": FAULTY}, {"load": "open_loop"}, {"metric": "tpot"}, {"predicted": NAN}, {"accelerator": "x"}]
)
def test_what_has_no_sound_throughput_or_price_is_left_out(change: dict[str, object]) -> None:
    assert decided(a_line("slow", 100, 100), a_line("fast", 200, 400) | change).empty


def test_a_derived_throughput_counts_as_the_truth() -> None:
    lines = (a_line("slow", 100, 100, metric=DERIVED), a_line("fast", 200, 400, metric=DERIVED))
    assert decided(*lines)["regret"].tolist() == pytest.approx([0.5])


def test_repeats_of_one_question_are_one_candidate_at_their_median() -> None:
    slow = [a_line("slow", value, 100) for value in (90, 100, 500)]
    table = decided(*slow, a_line("fast", 200, 400))
    assert table[["n_candidate", "regret"]].to_numpy().tolist() == [[2, pytest.approx(0.5)]]


def test_no_decision_has_no_figures() -> None:
    figures = regret_figures(decided(a_line("slow", 100, 100)))
    assert figures["n_decision"] == 0
    assert np.isnan(figures["median_regret"])


def test_what_has_no_price_is_counted_by_accelerator() -> None:
    lines = pd.DataFrame([a_line("x", 1, 1), a_line("x", 2, 1), a_line("slow", 1, 1), a_line("y", 1, 1, rule=FAULTY)])
    assert without_price(lines, PRICES) == {"x": 2}


def test_prices_are_those_of_one_accelerator() -> None:
    prices = least_prices()
    assert 0.5 < prices["nvidia-h100-sxm-80gb"] < 10
    assert min(prices.values()) > 0


def test_the_dump_gives_the_scoreboard_s_figures_back(board: Scoreboard) -> None:
    candidates = board.results["decisions"].tables["decisions"]
    told = board.results["decisions"].figures
    values = []
    for _, some in candidates.groupby("decision"):
        chosen = some[some["is_recommended"]]
        assert len(chosen) == 1
        assert chosen["predicted_cost_usd_per_token"].item() == some["predicted_cost_usd_per_token"].min()
        values.append(chosen["cost_usd_per_token"].item() / some["cost_usd_per_token"].min() - 1)
    assert told["n_decision"] == len(values) > 5
    assert told["median_regret"] == pytest.approx(np.median(values))
    assert told["p90_regret"] == pytest.approx(np.quantile(values, 0.9))
    assert told["within_5"] == pytest.approx(np.mean(np.array(values) <= 0.05))
