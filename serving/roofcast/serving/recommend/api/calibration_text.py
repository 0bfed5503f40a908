"""What references or a stack change in an answer, in words: hardware and cost without and with them, and why."""

from __future__ import annotations

from collections.abc import Sequence

from roofcast.data.units import ms_from_s
from roofcast.serving.recommend.answer.parts import CalibrationEffect, Entry, PredictedMetric, Recommendation

_NOTHING = "no deployment meets the limits"


def calibration_text(source: str, result: Recommendation, confidence: float) -> str:
    """Return the first entry without and with a source of calibration, such as `the stack profile rack-7`.

    The reason is what the source says of the deployment that it rules out, or else of the one that it admits. Figures
    are of one deployment at one load.
    """
    entry, effect = (result.entries[0] if result.entries else None), result.calibration_effect
    if effect is None:
        return f"with {source}: {_name(entry)}"
    if effect.without and entry and _key(effect.without) == _key(entry):
        return f"without {source} the answer is the same, {_name(entry)}; there {_figures(entry.predictions)}"
    answers = f"without {source}: {_name(effect.without)}; with it: {_name(entry)}"
    return f"{answers}, because {reason}" if (reason := _reason(effect, entry, confidence)) else answers


def _reason(effect: CalibrationEffect, entry: Entry | None, confidence: float) -> str:
    before, after = effect.without, effect.calibrated
    if before is None or after is None or (entry and entry.cost_usd_per_h < before.cost_usd_per_h):
        return f"on the latter {_figures(entry.predictions)}" if entry else ""
    reason = f"on the former {_figures(after.predictions)}"
    if entry and (entry.offer.id, entry.replica) == (before.offer.id, before.replica):
        return f"{reason}, so a replica serves {_capacity(entry)} instead of {_capacity(before)}"
    if after.p_limits_met < confidence:
        p = f"{after.p_limits_met:.2f} instead of {before.p_limits_met:.2f}"
        return f"{reason}, and all limits are met with probability {p}"
    return f"{reason}, so a replica serves less within the limits"


def _capacity(entry: Entry) -> str:
    if entry.users_per_replica is None:
        return f"{_number(entry.request_rate_per_replica)} requests/s"
    return f"{_number(entry.users_per_replica)} users"


def _key(entry: Entry) -> tuple[object, ...]:
    return entry.offer.id, entry.replica, entry.n_instance


def _name(entry: Entry | None) -> str:
    if entry is None:
        return _NOTHING
    replica = entry.replica
    how = f"{replica.split}, {replica.engine}, {replica.weight_precision}"
    return f"{entry.n_instance} x {entry.offer.instance_type} ({how}) for {_number(entry.cost_usd_per_h)} USD/h"


def _figures(predictions: Sequence[PredictedMetric]) -> str:
    """Return the figures that are limited, or else all, with and without the source."""
    shown = [one for one in predictions if one.limit is not None] or predictions
    return ", ".join(_figure(one) for one in shown)


def _figure(one: PredictedMetric) -> str:
    value, without = one.value, one.uncalibrated or one.value
    is_latency = one.metric.endswith("_s") and not one.metric.endswith("per_s")
    name = f"{one.metric.removesuffix('_s') if is_latency else one.metric}:{one.statistic}"
    ratio = f"{value / without:.2f} times"
    if is_latency:
        return f"{name} is {_number(ms_from_s(value))} ms, {ratio} the {_number(ms_from_s(without))} ms without it"
    return f"{name} is {_number(value)}, {ratio} the {_number(without)} without it"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" if value >= 100 else f"{value:.3g}"
