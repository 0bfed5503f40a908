"""How far a stack moves an answer, in words."""

from __future__ import annotations

from roofcast.data.units import ms_from_s
from roofcast.serving.recommend.answer.parts import PredictedMetric, Recommendation
from roofcast.serving.stacks.stack_choice import StackUsed


def stack_effect(stack: StackUsed, result: Recommendation) -> str:
    """Return the figures of the first entry with and without the stack: those limited, or else all."""
    about = f"about the {stack}"
    if not result.entries:
        return about
    predictions = result.entries[0].predictions
    shown = [one for one in predictions if one.limit is not None] or predictions
    figures = [_figure(one) for one in shown if one.uncalibrated is not None]
    return f"{about}: the first entry has {', '.join(figures)}" if figures else about


def _figure(one: PredictedMetric) -> str:
    value, without = one.value, one.uncalibrated or one.value
    is_latency = one.metric.endswith("_s") and not one.metric.endswith("per_s")
    name = f"{one.metric.removesuffix('_s') if is_latency else one.metric}:{one.statistic}"
    if is_latency:
        value, without = ms_from_s(value), ms_from_s(without)
    unit = " ms" if is_latency else ""
    return f"{name} {_number(value)}{unit} instead of {_number(without)}{unit} without it"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
