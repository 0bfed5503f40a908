"""Text of a recommendation for a terminal of 80 columns: the entries, and on request the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from roofcast.data.units import ms_from_s
from roofcast.serving.cli.tables import INDENT, counts_text, fold
from roofcast.serving.counts import count_text

REASON_TEXT: Final = {
    "same_cost": "at no less than the entries' cost (--n-entry shows more)",
    "dearer": "at no less than the entries' cost (--n-entry shows more)",
    "over_budget": "over the budget",
    "too_few_nodes": "without enough nodes",
    "misses_limit": "beyond a limit in every configuration searched",
    "no_offer": "without an offer large enough",
    "does_not_fit": "with too little memory",
    "no_engine": "without an engine for this model",
}
"""What the nearest configuration of an accelerator without an entry lacks, by the reason of its rejection."""


def recommendation_text(response: dict[str, Any], *, why: bool = False) -> str:
    """Return the entries and the mixed fleet of a response in JSON values, in lines of up to 80 characters.

    Parameters
    ----------
    why
        Whether to add the capacity and token prices of each entry, the cost of other confidences, and the reason of
        each accelerator without an entry. The reasons are always added where no deployment meets the limits.
    """
    return "\n".join(_paragraphs(response, why=why)) + "\n"


def _paragraphs(response: dict[str, Any], *, why: bool) -> Iterator[str]:
    yield fold(
        f"{response['model']}: least cost first, limits met with probability {response['confidence']:g} or more"
    )
    yield fold(response["load"]["text"])
    if effect := response.get("stack_effect"):
        yield fold(effect)
    for rank, entry in enumerate(response["entries"], start=1):
        yield ""
        yield from _entry(entry, f"{rank}.", why=why)
    yield from _fleet(response)
    yield from _levers(response)
    if not response["entries"] and not response["fleet"]:
        yield fold("no deployment meets the limits")
    if why or not response["entries"]:
        yield from _costs(response)
        yield from _families(response)
    elif response["families"]:
        yield fold(f"\n{_rejection_counts(response)}; --why has the details, capacity and token prices")


def _entry(entry: dict[str, Any], label: str, *, why: bool) -> Iterator[str]:
    costs = f"{_number(entry['cost_usd_per_h'])} USD/h, {_number(entry['cost_usd_per_month'])} USD a month"
    yield f"{label} {costs}; price of {entry['price_as_of']}"
    yield fold(_deployment(entry), INDENT)
    limits = [_prediction(metric) for metric in entry["predictions"] if metric["limit"] is not None]
    yield fold(f"{'; '.join(limits)}; all limits with probability {entry['p_limits_met']:.2f}", INDENT)
    if entry["outside"]:
        columns = ", ".join(entry["outside_columns"])
        yield fold(f"extrapolates{f' in {columns}' if columns else ''}: rests on the analytic estimate", INDENT)
    if why:
        yield fold(_capacity(entry), INDENT)
        yield fold(
            f"{_number(entry['cost_usd_per_million_input_token'])} USD per million input tokens, "
            f"{_number(entry['cost_usd_per_million_output_token'])} output; "
            f"bottleneck: {entry['bottleneck']}",
            INDENT,
        )


def _deployment(entry: dict[str, Any]) -> str:
    names = {"tp": "tensor", "pp": "pipeline", "dp": "data", "ep": "expert"}
    degrees = {short: entry[f"{name}_parallel"] for short, name in names.items()}
    split = " ".join(f"{short}{n}" for short, n in degrees.items() if n > 1 or short == "tp")
    speculation = entry["speculation"]
    drafts = f", {speculation['kind']} x {speculation['n_token']}" if speculation else ""
    replicas = f"{entry['n_replica']} replica{'s' if entry['n_replica'] != 1 else ''}"
    place = f"{entry['provider']}, {entry['region']}, {entry['pricing']}"
    instance = f"{entry['n_instance']} x {entry['instance_type']} ({place})"
    engine = f"{entry['engine']}, {entry['weight_precision']}{drafts}"
    return f"{instance}: {replicas} on {entry['accelerator']} {split}, {engine}"


def _prediction(metric: dict[str, Any]) -> str:
    low, high, limit = (_quantity(metric["metric"], metric[name]) for name in ("low", "high", "limit"))
    value = _quantity(metric["metric"], metric["value"])
    name = f"{metric['metric'].removesuffix('_s')}:{metric['statistic']}"
    return f"{name} {value} ({low} to {high}), limit {limit}"


def _quantity(metric: str, value: float) -> str:
    """Return a latency in ms or s, or another figure.

    Examples
    --------
    >>> _quantity("ttft_s", 0.2425), _quantity("e2e_s", 8.438), _quantity("output_throughput_token_per_s", 1203)
    ('242 ms', '8.44 s', '1,203')
    """
    if not metric.endswith("_s") or metric.endswith("per_s"):
        return _number(value)
    return f"{ms_from_s(value):.3g} ms" if value < 1 else f"{value:.3g} s"


def _capacity(entry: dict[str, Any]) -> str:
    users = entry["users_per_replica"]
    most = f"{_number(entry['request_rate_per_replica'])} requests/s"
    if users is not None:
        most = f"{_number(users)} user{'s' if users != 1 else ''}"
    return f"each replica serves up to {most}; {_in_flight(entry)}"


def _in_flight(entry: dict[str, Any]) -> str:
    load, slots = _number(entry["load_per_replica"]), _number(entry["in_flight_per_replica"])
    return f"{load} of {slots} requests in flight"


def _fleet(response: dict[str, Any]) -> Iterator[str]:
    if not response["fleet"]:
        return
    reason = "cheaper than the first entry" if response["entries"] else "no single instance type meets the demand"
    total = sum(part["cost_usd_per_h"] for part in response["fleet"])
    yield fold(f"\nmixed fleet for {_number(total)} USD/h: {reason}")
    for part in response["fleet"]:
        yield fold(f"{_deployment(part)}; {_in_flight(part)} on each replica", INDENT)


def _levers(response: dict[str, Any]) -> Iterator[str]:
    if response["levers"]:
        yield fold("\nwhat would change this")
    for lever in response["levers"]:
        saving = lever["saving_ratio"]
        saves = "" if saving is None else f" ({abs(saving):.0%} {'less' if saving >= 0 else 'more'})"
        copy = ", needs a quantised checkpoint" if lever["needs_quantised_copy"] else ""
        yield fold(f"{lever['change']}: {_number(lever['cost_usd_per_h'])} USD/h{saves}{copy}", INDENT)


def _costs(response: dict[str, Any]) -> Iterator[str]:
    costs = [cost for cost in response["cost_of_confidence"] if cost["cost_usd_per_h"] is not None]
    if costs:
        listed = ", ".join(f"{cost['confidence']:g}: {_number(cost['cost_usd_per_h'])}" for cost in costs)
        yield fold(f"\ncost of confidence in USD/h: {listed}")


def _rejection_counts(response: dict[str, Any]) -> str:
    """Return the number of accelerators without an entry by reason, that of their nearest configuration."""
    listed = counts_text((family["reason"] for family in response["families"]), REASON_TEXT)
    return f"other accelerators of these offers: {listed}"


def _families(response: dict[str, Any]) -> Iterator[str]:
    families = response["families"]
    if not families:
        return
    n = response["n_configuration"]
    yield fold(
        f"\n{count_text(len(families), 'accelerator')} without an entry, each by its best of {n} configurations"
    )
    for family in families:
        split = f", {family['engine']} tp{family['tensor_parallel']}" if family["engine"] else ""
        yield fold(f"{family['accelerator']}{split}: {family['detail']}", INDENT)


def _number(value: float) -> str:
    """Return a number in four digits.

    Examples
    --------
    >>> _number(9820.4), _number(0.072084), _number(4), _number(123456.0)
    ('9,820', '0.07208', '4', '123,456')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
