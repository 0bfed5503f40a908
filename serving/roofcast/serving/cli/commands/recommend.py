"""The command that ranks hardware by cost."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from roofcast.serving.cli.arguments.options import request_options, require_with, with_model, with_options
from roofcast.serving.cli.arguments.request_check import Calibration, Problems, check_out, check_search
from roofcast.serving.cli.commands.predict import SUPPORT_TEXT
from roofcast.serving.cli.console import INDENT, NO_BREAK, counts_text, fold, note, spinner, warn
from roofcast.serving.cli.context import (
    AsJson,
    ReferenceFile,
    Server,
    StackOption,
    load_predictor,
    open_service,
    today,
)
from roofcast.serving.cli.files import read_model, read_references_table, writing
from roofcast.serving.cli.remote import ask, served_fields
from roofcast.serving.display_names import (
    count_text,
    engine_name,
    interval_text,
    metric_name,
    precision_name,
    price_date_text,
    pricing_name,
    quantity_text,
    region_name,
    three_digits,
    usd_text,
)

if TYPE_CHECKING:
    from roofcast.serving.recommend.api.request import RecommendationRequest

N_REJECTION_JSON: Final = 500

DEPLOYMENT_FILE: Final = "deployment-file"


def _declare() -> type[RecommendationRequest]:
    from roofcast.serving.recommend.api.request import RecommendationRequest

    return RecommendationRequest


@with_options(lambda: request_options(_declare()), reference="references", stack="stack")
def recommend(
    options: dict[str, Any],
    *,
    context: typer.Context,
    reference: ReferenceFile = None,
    stack: StackOption = "",
    deployment_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --deployment: write it to a file instead.")
    ] = None,
    why: Annotated[
        bool, typer.Option("--why", help="Add capacities, token prices, and why other accelerators have no entry.")
    ] = False,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Rank hardware and configurations that meet the limits by cost; without a load, by the price of tokens."""
    from roofcast.features.columns import ENGINES

    problems: Problems = context.obj
    with problems:
        require_with("deployment", options.get("deployment"), {DEPLOYMENT_FILE: deployment_file})
        check_out(deployment_file, DEPLOYMENT_FILE)
    Calibration(stack, server).check(problems)
    more = {"stack": stack or None, "n_rejection": N_REJECTION_JSON if as_json else 0}
    references = reference, read_references_table
    request = check_search(problems, _declare(), options, references, server, ENGINES, **more)
    response = _recommend(request, server)
    for warning in response["warnings"]:
        warn(warning)
    artefact = response["entries"][0]["deployment"] if response["entries"] else None
    if artefact and deployment_file:
        with writing(deployment_file, DEPLOYMENT_FILE):
            deployment_file.write_text(artefact, encoding="utf-8")
        left = "; its first lines say what is left to fill in" if "# to fill in" in artefact else ""
        note(f"{request.deployment} of the first entry is written to {deployment_file}{left}")
    if as_json:
        print(json.dumps(response))
        return
    print(recommendation_text(response, today(), why=why), end="")
    if artefact and not deployment_file:
        print(f"\n{artefact}", end="")


def _recommend(request: RecommendationRequest, server: str) -> dict[str, Any]:
    if server:
        fields = served_fields(request, server)
        with ask(server) as client:
            return dict(client.recommend(**fields))
    from roofcast.serving.recommend.api.recommendation_service import answer_recommendation

    service = open_service()
    request = with_model(request, read_model(str(request.model), service.catalog))
    with spinner("searching"):
        active = load_predictor(service).active_model
        return answer_recommendation(request, service.catalog, active, service.stacks, today()).model_dump(
            mode="json"
        )


REASON_TEXT: Final = {
    "same_cost": "not cheaper than the entries (--n-entry shows more)",
    "dearer": "not cheaper than the entries (--n-entry shows more)",
    "over_budget": "over the budget",
    "too_few_nodes": "without enough nodes",
    "misses_limit": "beyond a limit in every configuration searched",
    "no_offer": "without an offer large enough",
    "does_not_fit": "with too little memory",
    "no_engine": "without an engine for this model",
}
"""What the nearest configuration of an accelerator without an entry lacks, by the reason of its rejection."""

ORDER_TEXT: Final = {
    "cost": "least cost",
    "tokens": "cheapest tokens",
    "throughput": "highest throughput",
    "accelerators": "fewest accelerators",
}
"""Ranking of the entries in words, by objective."""

NEAR_TIE_RATIO: Final = 0.1
"""Entries that cost at most this share more than the first are near ties: the price of the day orders them."""


def recommendation_text(response: dict[str, Any], today: dt.date, *, why: bool = False) -> str:
    """Return the entries and the mixed fleet of a response in JSON values, in lines of up to 80 characters.

    `today`: date that the age of prices is counted to. `why`: whether to add the capacity and token prices of each
    entry, the cost of other confidences, and the reason of each accelerator without an entry. The reasons are always
    added where no deployment meets the limits.
    """
    return "\n".join(_paragraphs(response, today, why=why)) + "\n"


def _paragraphs(response: dict[str, Any], today: dt.date, *, why: bool) -> Iterator[str]:
    has_limits = any(one["limit"] is not None for entry in response["entries"] for one in entry["predictions"])
    met = f", limits met with probability {response['confidence']:g} or more" if has_limits else ""
    objective = response["objective"]
    yield fold(
        f"{response['model']}: {ORDER_TEXT[objective]} first{met}; intervals of {response['level']:.0%} in brackets"
    )
    yield fold(response["load"]["text"])
    if response["entries"]:
        yield fold(f"assumed, as not given, of the first: {', '.join(response['entries'][0]['assumed'])}")
    if effect := response.get("stack_effect"):
        yield fold(effect)
    for rank, entry in enumerate(response["entries"], start=1):
        yield ""
        yield from _entry(entry, f"{rank}.", today, why=why, is_endless=objective in ("tokens", "throughput"))
    yield from _near_ties(response["entries"] if objective == "cost" else ())
    yield from _fleet(response)
    if not response["entries"] and not response["fleet"]:
        yield fold("\nno deployment meets the limits")
    yield from _levers(response)
    if why or not response["entries"]:
        yield from _costs(response)
        yield from _families(response)
    elif response["families"]:
        yield from _rejection_counts(response)


def _entry(entry: dict[str, Any], label: str, today: dt.date, *, why: bool, is_endless: bool) -> Iterator[str]:
    costs = f"{usd_text(entry['cost_usd_per_h'])} USD/h, {entry['cost_usd_per_month']:,.0f} USD a month"
    yield f"{label} {costs}; {price_date_text(entry['price_as_of'], today)}"
    yield fold(_deployment(entry), INDENT)
    shown = _shown(entry["predictions"])
    chance = entry["p_limits_met"]
    in_time = entry["batch_h"] is not None and not is_endless
    what = [*(["all limits"] if shown else []), *(["the deadline"] if in_time else [])]
    met = [f"meets {' and '.join(what)} with probability {chance:.2f}"] if what else []
    yield fold("; ".join([*map(_prediction, shown or entry["predictions"]), *met]), INDENT)
    if entry["batch_h"] is not None:
        hours = three_digits(entry["batch_h"])
        yield fold(f"the batch takes {hours} hours and costs {usd_text(entry['batch_usd'])} USD in all", INDENT)
    if is_endless:
        yield fold(
            f"{usd_text(entry['cost_usd_per_million_token'])} USD per million tokens; {_capacity(entry)}", INDENT
        )
    yield from _warnings(entry, INDENT)
    if entry["outside"]:
        columns = ", ".join(entry["outside_columns"])
        yield fold(f"extrapolates{f' in {columns}' if columns else ''}: rests on the analytic estimate", INDENT)
    if why:
        yield fold(SUPPORT_TEXT[entry["support"]], INDENT)
        yield fold(_capacity(entry), INDENT)
        yield fold(
            f"{usd_text(entry['cost_usd_per_million_input_token'])} USD per million input tokens, "
            f"{usd_text(entry['cost_usd_per_million_output_token'])} USD per million output tokens; "
            f"bottleneck: {entry['bottleneck']}",
            INDENT,
        )


def _deployment(entry: dict[str, Any]) -> str:
    speculation = entry["speculation"]
    drafts = f", {speculation['kind']} x {speculation['n_token']}" if speculation else ""
    replicas = f"{entry['n_replica']} replica{'s' if entry['n_replica'] != 1 else ''}"
    place = f"{entry['provider']}, {region_name(entry['region'])}, {pricing_name(entry['pricing'])}"
    instance = f"{entry['n_instance']} x {entry['instance_type']} ({place})"
    of = f" of {entry['checkpoint']}" if entry["checkpoint"] else ""
    precision = precision_name(entry["weight_precision"], entry["weight_bit"])
    engine = f"{engine_name(entry['engine'])}, {precision}{of}{drafts}"
    return f"{instance}: {replicas} on {entry['accelerator']} {_split(entry)}, {engine}"


def _split(replica: dict[str, Any]) -> str:
    degrees = {name: replica[name] for name in ("tp", "pp", "dp", "ep")}
    return " ".join(f"{name}{n}" for name, n in degrees.items() if n > 1 or name == "tp")


def _prediction(metric: dict[str, Any]) -> str:
    name = f"{metric_name(metric['metric'])} {metric['statistic']}"
    figure = interval_text(metric["metric"], metric["value"], metric["low"], metric["high"])
    limit = "" if metric["limit"] is None else f", limit {quantity_text(metric['metric'], metric['limit'])}"
    return f"{name} {figure}{limit}"


def _shown(predictions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    limited = {(one["metric"], one["statistic"]) for one in predictions if one["limit"] is not None}
    return [
        one
        for one in predictions
        if one["limit"] is not None or (one["metric"] == "tpot_s" and ("itl_s", one["statistic"]) in limited)
    ]


def _capacity(entry: dict[str, Any]) -> str:
    users = entry["users_per_replica"]
    most = f"{three_digits(entry['request_rate_per_replica'])} requests/s"
    if users is not None:
        most = count_text(floor(users) if users >= 1 else users, "user")
    return f"each replica serves up to {most} within the limits; {_in_flight(entry)}"


def _in_flight(entry: dict[str, Any]) -> str:
    load, most = (three_digits(entry[name]) for name in ("load_per_replica", "in_flight_per_replica"))
    return f"{load} requests in flight on each, of at most {most}"


def _near_ties(entries: Sequence[dict[str, Any]]) -> Iterator[str]:
    if not entries:
        return
    most = entries[0]["cost_usd_per_h"] * (1 + NEAR_TIE_RATIO)
    ranks = [str(rank) for rank, entry in enumerate(entries, 1) if rank > 1 and entry["cost_usd_per_h"] <= most]
    if ranks:
        more = f"each costs at most {NEAR_TIE_RATIO:.0%} more, so the prices of the day decide"
        yield fold(f"\nnear ties with entry 1: {', '.join(ranks)}; {more}")


def _fleet(response: dict[str, Any]) -> Iterator[str]:
    if not response["fleet"]:
        return
    reason = "cheaper than the first entry" if response["entries"] else "no single instance type meets the demand"
    total = sum(part["cost_usd_per_h"] for part in response["fleet"])
    yield fold(f"\nmixed fleet for {usd_text(total)} USD/h: {reason}")
    for part in response["fleet"]:
        yield fold(f"{_deployment(part)}; {_in_flight(part)}", INDENT)
        yield from _warnings(part, 2 * INDENT)


def _warnings(deployment: dict[str, Any], indent: str) -> Iterator[str]:
    for warning in deployment["warnings"]:
        yield fold(f"warning: {warning}", indent)


def _levers(response: dict[str, Any]) -> Iterator[str]:
    if response["levers"]:
        yield fold("\nwhat would cost less" if response["entries"] else "\nwhat would meet the limits")
    for lever in response["levers"]:
        saving = lever["saving_ratio"]
        saves = "" if saving is None else f" ({abs(saving):.0%} {'less' if saving >= 0 else 'more'})"
        copy = ", needs a quantised checkpoint" if lever["needs_quantised_copy"] else ""
        instances = (
            f"{lever['n_instance']} x {lever['instance_type']} ({lever['provider']}, {region_name(lever['region'])})"
        )
        yield fold(f"{lever['change']}: {usd_text(lever['cost_usd_per_h'])} USD/h{saves}, {instances}{copy}", INDENT)
        yield from _warnings(lever, 2 * INDENT)


def _costs(response: dict[str, Any]) -> Iterator[str]:
    costs = [cost for cost in response["cost_of_confidence"] if cost["cost_usd_per_h"] is not None]
    if costs:
        listed = ", ".join(f"{usd_text(cost['cost_usd_per_h'])} USD/h at {cost['confidence']:g}" for cost in costs)
        yield fold(f"\nleast cost by the probability that all limits are met: {listed}")


def _rejection_counts(response: dict[str, Any]) -> Iterator[str]:
    n = count_text(len(response["families"]), "other accelerator")
    yield fold(f"\n{n} of these offers without an entry; --why has the details, capacity and token prices")
    counts = counts_text((family["reason"] for family in response["families"]), REASON_TEXT)
    yield from (fold(count, INDENT) for count in counts)


def _families(response: dict[str, Any]) -> Iterator[str]:
    families = response["families"]
    if not families:
        return
    n = response["n_configuration"]
    yield fold(
        f"\n{count_text(len(families), 'accelerator')} without an entry, each by its best of {n} configurations"
    )
    by_text: dict[str, list[dict[str, Any]]] = {text: [] for text in REASON_TEXT.values()}
    for family in families:
        by_text[REASON_TEXT[family["reason"]]].append(family)
    for text, group in by_text.items():
        if group:
            yield from _group(text.partition(" (")[0], group)


def _group(text: str, group: Sequence[dict[str, Any]]) -> Iterator[str]:
    clauses = [family["detail"].split("; ") for family in group]
    shared = [clause for clause in clauses[0] if len(group) > 1 and all(clause in own for own in clauses)]
    yield fold("; ".join([f"{len(group)} {text}", *shared]), INDENT)
    own_details = ["; ".join(clause for clause in own if clause not in shared) for own in clauses]
    if group[0]["reason"] == "no_engine" and len(group) > 1:
        own_details = ["" for _ in group]  # each only names the accelerator again
    names = [_family_name(family) for family in group]
    if not any(own_details):
        yield fold(", ".join(name.replace(" ", NO_BREAK) for name in names), 2 * INDENT)
        return
    for name, detail in zip(names, own_details, strict=True):
        yield fold(f"{name}: {detail}", 2 * INDENT)


def _family_name(family: dict[str, Any]) -> str:
    tried = f" {engine_name(family['engine'])} {_split(family)}" if family["engine"] else ""
    return f"{family['accelerator']}{tried}"
