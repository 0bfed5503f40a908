"""Texts of training answers for a terminal of 80 columns."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from roofcast.data.units import BYTE_PER_GB
from roofcast.serving.cli.console import INDENT, counts_text, fold
from roofcast.serving.display_names import (
    count_text,
    price_date_text,
    pricing_name,
    region_name,
    three_digits,
    usd_text,
)

MEMORY_PARTS: Final = ("weights", "gradients", "optimizer", "activations", "logits", "buffers", "reserve")
REASON_TEXT: Final = {
    "dearer": "not cheaper than the entries (--n-entry shows more)",
    "over_budget": "over the budget or the price an hour",
    "too_slow": "too slow for the deadline",
    "may_not_fit": "below the required probability to fit",
    "too_few_nodes": "without enough nodes",
    "does_not_fit": "without a plan that fits",
    "excluded": "unfit to train this job",
}
"""What the nearest run of an accelerator without an entry lacks, by the reason of its miss."""


def job_text(answer: Mapping[str, Any], level: float) -> str:
    """Return the answer of one job in lines of up to 80 characters."""
    return "\n".join(_job(answer, level)) + "\n"


def _job(answer: Mapping[str, Any], level: float) -> Iterator[str]:
    plan = {name.removeprefix("plan_"): value for name, value in answer.items() if name.startswith("plan_")}
    yield fold(f"{plan['framework']}: {plan_text(plan)}")
    for name, unit, scale in (
        ("step_time_s", "s a step", 1.0), ("throughput_token_per_s", "tokens/s", 1.0), ("mfu_ratio", "MFU", 1.0),
        ("peak_memory_byte", "GB peak memory", BYTE_PER_GB),
    ):  # fmt: skip
        low, value, high = (three_digits(answer[f"{name}{end}"] / scale) for end in ("_lo", "", "_hi"))
        yield fold(f"{value} {unit} ({low} to {high}, with probability {level:g})", INDENT)
    yield fold(memory_text(answer, answer["p_fits"]), INDENT)
    yield fold(f"{three_digits(answer['power_w'])} W drawn by all accelerators, without their hosts", INDENT)
    if answer["outside"]:
        yield fold("extrapolates: far from every run that was measured", INDENT)
    if answer["assumed"]:
        yield fold(f"assumed, as not given: {answer['assumed']}", INDENT)
    if answer["reason"]:
        yield fold(answer["reason"], INDENT)


def recommendation_text(response: Mapping[str, Any], today: dt.date, *, why: bool = False) -> str:
    """Return the entries and near misses of a response in JSON values, in lines of up to 80 characters.

    `today`: date that the age of prices is counted to. `why`: whether to add memory by part, the front of time and
    cost, and all misses. Misses are always listed where nothing runs the job within its limits.
    """
    return "\n".join(_recommendation(response, today, why=why)) + "\n"


def _recommendation(response: Mapping[str, Any], today: dt.date, *, why: bool) -> Iterator[str]:
    limits = [f"{response['deadline_h']:g} h"] if response["deadline_h"] else []
    limits += [f"{response['budget_usd']:g} USD"] if response["budget_usd"] else []
    within = f" within {' and '.join(limits)}" if limits else ""
    probability = f"with probability {response['confidence']:g} or more"
    intervals = f"intervals of {response['level']:.0%} in brackets"
    yield fold(
        f"{response['model']}, {response['method']}: least cost first, fits{within} {probability}; {intervals}"
    )
    batch, length = response["n_global_batch_sequence"], response["n_token_per_sequence"]
    tokens, steps = three_digits(response["total_token"]), three_digits(response["n_step"])
    yield fold(f"{tokens} tokens, {steps} steps of {batch} sequences of {length} tokens")
    if response["defaults"]:
        yield fold(f"assumed, as not given: {', '.join(response['defaults'])}; --why has what else is assumed")
    for entry in response["entries"]:
        yield ""
        yield from _entry(entry, today, why=why)
    yield from _near_ties(response["entries"])
    if not response["entries"]:
        yield fold("no hardware runs the job within its limits")
    misses = response["misses"]
    if why and response["pareto"]:
        yield fold("\nno other run is both faster and cheaper than these")
        for point in response["pareto"]:
            hours, cost = three_digits(point["hours"]), three_digits(point["cost_usd"])
            yield fold(f"{hours} h, {cost} USD: {point['n_accelerator']} x {point['accelerator']}", INDENT)
    if misses and (why or not response["entries"]):
        yield fold(f"\n{count_text(response['n_miss'], 'accelerator')} without an entry")
        for miss in misses:
            yield fold(f"{miss['accelerator']}: {miss['detail']}", INDENT)
    elif misses:
        n = count_text(response["n_miss"], "other accelerator")
        yield fold(f"\n{n} of these offers without an entry; --why has the details")
        counts = counts_text((miss["reason"] for miss in misses), REASON_TEXT)
        yield from (fold(count, INDENT) for count in counts)
    if why:
        yield fold("\nassumed")
        yield from (fold(assumption, INDENT) for assumption in response["assumptions"])


def _near_ties(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    ties = [str(entry["rank"]) for entry in entries if entry["ties_first"]]
    if len(ties) > 1:
        yield fold(
            f"\nnear ties with entry {ties[0]}: {', '.join(ties[1:])}; each cost lies within the other's interval"
        )


def _entry(entry: Mapping[str, Any], today: dt.date, *, why: bool) -> Iterator[str]:
    units = {"cost_usd_interval": "USD", "hours_interval": "h", "energy_kwh": "kWh"}
    figures = ", ".join(_with_interval(entry[name], unit) for name, unit in units.items())
    yield fold(f"{entry['rank']}. {figures}")
    place = f"{entry['provider']}, {region_name(entry['region'])}, {pricing_name(entry['pricing'])}"
    price = f"{usd_text(entry['usd_per_h'])} USD/h, {price_date_text(entry['price_as_of'], today)}"
    yield fold(f"{entry['n_instance']} x {entry['instance_type']} ({place}) for {price}", INDENT)
    plan = entry["plan"]
    yield fold(f"{entry['n_accelerator']} x {entry['accelerator']}, {plan['framework']} {plan_text(plan)}", INDENT)
    rate, mfu = three_digits(entry["throughput_token_per_s"]["value"]), entry["mfu_ratio"]["value"]
    chances = {"fits": "p_fits", "deadline": "p_deadline_met", "budget": "p_budget_met"}
    listed = ", ".join(f"{name} {entry[key]:.2f}" for name, key in chances.items() if entry[key] is not None)
    yield fold(f"{rate} tokens/s, MFU {mfu:.2f}; probability: {listed}", INDENT)
    if entry["outside"]:
        yield fold("extrapolates: far from every run that was measured", INDENT)
    if why:
        parts = {f"memory_{name}_byte": value for name, value in entry["memory_byte"].items()}
        yield fold(
            memory_text(parts | {"memory_capacity_byte": entry["memory_capacity_byte"]}, entry["p_fits"]), INDENT
        )


def _with_interval(interval: Mapping[str, float], unit: str) -> str:
    value, low, high = (three_digits(interval[name]) for name in ("value", "low", "high"))
    return f"{value} {unit} ({low} to {high})"


def plan_text(plan: Mapping[str, Any]) -> str:
    """Return a plan in short.

    Examples
    --------
    >>> plan = {"tp": 2, "pp": 1, "vp": 1, "cp": 1, "dp": 4, "ep": 1, "sharding": "zero1", "recomputation": "none",
    ...         "n_micro_batch_sequence": 2.0, "n_gradient_accumulation": 16.0, "offload": "optimizer"}
    >>> plan_text(plan)
    'tp2 dp4 zero1, micro-batch 2 x 16, recomputation none, optimizer on the host'
    """
    degrees = [f"{name}{plan[name]:g}" for name in ("tp", "pp", "vp", "cp", "ep", "dp") if plan[name] > 1]
    split = " ".join([*degrees, plan["sharding"]])
    batch = f"micro-batch {plan['n_micro_batch_sequence']:g} x {plan['n_gradient_accumulation']:g}"
    held = "" if plan["offload"] == "none" else f", {plan['offload']} on the host"
    return f"{split}, {batch}, recomputation {plan['recomputation']}{held}"


def memory_text(answer: Mapping[str, Any], p_fits: float) -> str:
    """Return the estimated memory by part, the capacity and P(fits)."""
    parts = {name: answer[f"memory_{name}_byte"] / BYTE_PER_GB for name in MEMORY_PARTS}
    listed = ", ".join(f"{name} {value:.1f}" for name, value in parts.items() if value >= 0.05)
    capacity = answer["memory_capacity_byte"] / BYTE_PER_GB
    return f"memory in GB: {listed}; of {capacity:.1f}, fits with probability {p_fits:.2f}"
