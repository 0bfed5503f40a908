"""An answer about a stack says how far the stack moves it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from roofcast.serving.recommend.answer.parts import PredictedMetric
from roofcast.serving.recommend.api.stack_effect import stack_effect
from roofcast.serving.stacks.stack_choice import StackUsed

RACK = StackUsed("rack-7", "profile")


def a_result(*predictions: PredictedMetric) -> Any:
    return SimpleNamespace(entries=[SimpleNamespace(predictions=predictions)] if predictions else [])


def a_prediction(metric: str, value: float, uncalibrated: float | None, limit: float | None) -> PredictedMetric:
    return PredictedMetric(metric, "p50", value, value / 2, value * 2, limit, uncalibrated)


def test_the_limited_figures_of_the_first_entry_are_compared() -> None:
    limited = a_prediction("tpot_s", 0.0289, 0.0277, 0.06)
    text = stack_effect(RACK, a_result(limited, a_prediction("e2e_s", 3.0, 2.0, None)))

    assert (
        text == "about the stack profile rack-7: the first entry has tpot:p50 28.9 ms instead of 27.7 ms without it"
    )


def test_without_an_entry_the_stack_is_named() -> None:
    assert stack_effect(RACK, a_result()) == "about the stack profile rack-7"


def test_a_throughput_has_its_unit_in_its_name() -> None:
    text = stack_effect(RACK, a_result(a_prediction("output_throughput_token_per_s", 1200.0, 1000.0, None)))

    assert "output_throughput_token_per_s:p50 1,200 instead of 1,000" in text
