"""The command that ranks hardware by cost."""

# ruff: noqa: PLC0415  (a command imports what it needs when it runs)

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from roofcast.data.errors import InputError
from roofcast.serving.cli.arguments.completion import (
    complete_column,
    complete_engine,
    complete_names,
)
from roofcast.serving.cli.arguments.offer_options import MODEL_OPTION, OFFER_OPTIONS
from roofcast.serving.cli.arguments.options import Option, require_with, with_options
from roofcast.serving.cli.arguments.request_check import (
    check_names,
    check_out,
    check_stack,
    collect_errors,
    load_once,
)
from roofcast.serving.cli.arguments.usage import with_check
from roofcast.serving.cli.console import note, spinner, warn
from roofcast.serving.cli.context import (
    AsJson,
    ReferenceFile,
    Server,
    StackOption,
    load_predictor,
    open_service,
    today,
)
from roofcast.serving.cli.text.amounts import parse_amount
from roofcast.serving.cli.text.recommendation_text import recommendation_text

Number = float | None
Names = list[str] | None

OPTIONS: Final = {
    "model": MODEL_OPTION,
    "slo": Option("A limit such as 'ttft:p95<=500ms'; repeatable.", list[str], names=("--limit", "--slo")),
    "isl": Option(
        "Mean input tokens; 32k is 32,000.",
        Number,
        None,
        metavar="NUMBER",
        names=("--n-input-token", "--isl"),
        parse=parse_amount,
    ),
    "osl": Option(
        "Mean output tokens.",
        Number,
        None,
        metavar="NUMBER",
        names=("--n-output-token", "--osl"),
        parse=parse_amount,
    ),
    "preset": Option("A typical workload, such as chat, for lengths that are not given.", str | None, None),
    "concurrency": Option("Requests in flight at the peak.", Number, None),
    "rate": Option(
        "Requests per second at the peak.", Number, None, names=("--request-rate-per-s", "--request-rate", "--rate")
    ),
    "users": Option("Users at the peak, each of whom waits for an answer and then thinks.", Number, None),
    "think_time": Option(
        "Seconds between an answer and the user's next request.",
        Number,
        None,
        names=("--think-time-s", "--think-time"),
    ),
    "headroom": Option("Share of the capacity to keep free at the peak.", Number, None),
    "prefix_cache_ratio": Option("Share of the input that the prefix cache holds.", Number, None),
    **OFFER_OPTIONS,
    "engine": Option("Admit this engine; repeatable.", Names, None, complete=complete_engine),
    "precision": Option(
        "Admit this weight precision in place of the checkpoint's; repeatable.",
        Names,
        None,
        names=("--weight-precision", "--precision"),
        complete=complete_column("weight_precision"),
    ),
    "budget": Option("Maximum USD per hour.", Number, None, names=("--max-usd-per-h", "--budget")),
    "nodes": Option(
        "Maximum number of nodes of one replica.", int, 1, show_default=True, names=("--max-nodes", "--nodes")
    ),
    "speculation": Option(
        "Search this kind of speculative decoding: none, mtp, eagle, draft or ngram; repeatable.",
        Names,
        None,
        complete=complete_column("speculation"),
    ),
    "n_speculative_token": Option("Speculated tokens per step; 3 by default.", int | None, None),
    "acceptance_ratio": Option("Probability that a speculated token is accepted.", Number, None),
    "draft_model": Option("Checkpoint of the drafts, for --deployment.", str | None, None),
    "confidence": Option("Minimum probability that all limits are met.", float, 0.8, show_default=True),
    "deployment": Option(
        "Print how to run the first entry: vllm, sglang, trtllm, kubernetes or kserve.",
        str,
        "",
        complete=complete_names("vllm", "sglang", "trtllm", "kubernetes", "kserve"),
    ),
    "level": Option("Probability of the intervals.", float, 0.8, show_default=True),
    "top": Option("Maximum number of entries.", int, 10, show_default=True, names=("--n-entry", "--top")),
}
"""Options of the request; `OPTION_FIELDS` of the request model names the field of each."""

N_REJECTION_JSON: Final = 500

DEPLOYMENT_FILE: Final = "deployment-file"


def _errors(values: Mapping[str, Any]) -> list[InputError]:
    from roofcast.features.columns import ENGINES
    from roofcast.serving.cli.files import parse_inventory, read_model_path, read_references_table
    from roofcast.serving.recommend.api.request import RecommendationRequest, option_fields, with_one_load

    options = {**values, "model": values["model"] or "", "inventory": []}
    options = {name: options[name] for name in OPTIONS}
    server, reference = values["server"], values["reference"]
    return collect_errors(
        lambda: options.update(inventory=parse_inventory(values["inventory"] or [])),
        lambda: read_model_path(options["model"]),
        lambda: read_references_table(reference) if reference else None,
        lambda: require_with("deployment", values["deployment"], {DEPLOYMENT_FILE: values["deployment_file"]}),
        lambda: check_out(values["deployment_file"], DEPLOYMENT_FILE),
        lambda: check_stack(values["stack"], server, load_once()),
        lambda: RecommendationRequest.from_options(options),
        lambda: check_names(option_fields(with_one_load(options)), ENGINES, server),
    )


def _fields() -> Mapping[str, str]:
    from roofcast.serving.recommend.api.request import OPTION_FIELDS

    return OPTION_FIELDS


@with_check(_errors, _fields)
@with_options(OPTIONS)
def recommend(
    options: dict[str, Any],
    *,
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
    """Rank hardware and configurations that meet the limits by cost."""
    from roofcast.serving.cli.files import parse_inventory, read_references_table, write_text

    options["inventory"] = parse_inventory(options["inventory"] or [])
    options["reference"] = read_references_table(reference).records() if reference else []
    options["stack"] = stack or None
    options["rejections"] = N_REJECTION_JSON if as_json else 0
    require_with("deployment", options["deployment"], {DEPLOYMENT_FILE: deployment_file})
    check_out(deployment_file, DEPLOYMENT_FILE)
    response = _ask_service(server, options) if server else _recommend(options)
    for warning in response["warnings"]:
        warn(warning)
    artefact = response["entries"][0]["deployment"] if response["entries"] else None
    if artefact and deployment_file:
        write_text(artefact, deployment_file, DEPLOYMENT_FILE)
        note(
            f"{options['deployment']} of the first entry is written to {deployment_file}{_left_to_fill_in(artefact)}"
        )
    if as_json:
        print(json.dumps(response))
        return
    print(recommendation_text(response, why=why), end="")
    if artefact and not deployment_file:
        print(f"\n{artefact}", end="")


def _left_to_fill_in(artefact: str) -> str:
    return "; its first lines say what is left to fill in" if "# to fill in" in artefact else ""


def _recommend(options: dict[str, Any]) -> dict[str, Any]:
    """Return the recommendation of the active predictor; the request is validated before anything is loaded."""
    from roofcast.serving.cli.files import read_model
    from roofcast.serving.recommend.api.request import RecommendationRequest

    RecommendationRequest.from_options(options)
    from roofcast.serving.recommend.api.service import answer_recommendation

    service = open_service()
    request = RecommendationRequest.from_options(options | {"model": read_model(options["model"], service.catalog)})
    with spinner("searching"):
        load_predictor(service)
        return answer_recommendation(
            request, service.catalog, service.active_model, service.stacks, today()
        ).model_dump(mode="json")


def _ask_service(url: str, options: dict[str, Any]) -> dict[str, Any]:
    from roofcast.serving.cli.remote import ask, read_served_model
    from roofcast.serving.recommend.api.request import RecommendationRequest

    request = RecommendationRequest.from_options(options | {"model": read_served_model(options["model"], url)})
    fields: Any = request.model_dump(mode="json", exclude_unset=True)
    with ask(url) as client:
        return dict(client.recommend(**fields))
