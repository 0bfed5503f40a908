"""What references or a stack change in an answer, in words: hardware and cost without and with them, and why."""

import math
from collections.abc import Sequence

from roofcast.serving.counts import count_text, quantity_text, three_digits, usd_text
from roofcast.serving.display_names import engine_name, metric_name, precision_name
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
    if entry and math.isclose(entry.cost_usd_per_h, after.cost_usd_per_h):
        return f"{reason}; both cost the same{_advantage(entry, after)}"
    return f"{reason}, so a replica serves less within the limits"


def _advantage(entry: Entry, former: Entry) -> str:
    chance, former_chance = f"{entry.p_limits_met:.2f}", f"{former.p_limits_met:.2f}"
    if chance != former_chance:
        return f", and the latter meets all limits with probability {chance} instead of {former_chance}"
    used, before = (one.n_replica * one.replica.n_accelerator for one in (entry, former))
    accelerators = count_text(used, "accelerator")
    return f", and replicas of the latter have {accelerators} instead of {before}" if used != before else ""


def _capacity(entry: Entry) -> str:
    if entry.users_per_replica is None:
        return f"{three_digits(entry.request_rate_per_replica)} requests/s"
    return f"{three_digits(entry.users_per_replica)} users"


def _key(entry: Entry) -> tuple[object, ...]:
    return entry.offer.id, entry.replica, entry.n_instance


def _name(entry: Entry | None) -> str:
    if entry is None:
        return _NOTHING
    replica = entry.replica
    precision = precision_name(replica.weight_precision, replica.weight_bit)
    how = f"{replica.split}, {engine_name(replica.engine)}, {precision}"
    return f"{entry.n_instance} x {entry.offer.instance_type} ({how}) for {usd_text(entry.cost_usd_per_h)} USD/h"


def _figures(predictions: Sequence[PredictedMetric]) -> str:
    shown = [one for one in predictions if one.limit is not None] or predictions
    return ", ".join(_figure(one) for one in shown)


def _figure(one: PredictedMetric) -> str:
    value, without = one.value, one.uncalibrated or one.value
    figure, usual = (quantity_text(one.metric, amount) for amount in (value, without))
    return (
        f"{metric_name(one.metric)} {one.statistic} is {figure}, {value / without:.2f} times the {usual} without it"
    )
