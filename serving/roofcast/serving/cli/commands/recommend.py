"""The command that ranks hardware by cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from roofcast.data.errors import InputError, join_errors
from roofcast.serving.cli.arguments.options import (
    option_fields,
    read_request,
    request_options,
    require_with,
    with_model,
    with_options,
)
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
from roofcast.serving.cli.files import parse_inventory, read_model, read_model_path, read_references_table, write_text
from roofcast.serving.cli.remote import ask, read_served_model
from roofcast.serving.cli.text.recommendation_text import recommendation_text

if TYPE_CHECKING:
    from roofcast.serving.recommend.api.request import RecommendationRequest

N_REJECTION_JSON: Final = 500

DEPLOYMENT_FILE: Final = "deployment-file"


LOADS: Final = ("concurrency", "request_rate_per_s", "users")


def _declare() -> type[RecommendationRequest]:
    from roofcast.serving.recommend.api.request import RecommendationRequest

    return RecommendationRequest


def _errors(values: Mapping[str, Any]) -> list[InputError]:
    from roofcast.features.columns import ENGINES

    server, reference = values["server"], values["reference"]
    options, errors = _fields_of({**values, "model": values["model"] or ""})
    return errors + collect_errors(
        lambda: read_model_path(options["model"]),
        lambda: read_references_table(reference) if reference else None,
        lambda: require_with("deployment", values["deployment"], {DEPLOYMENT_FILE: values["deployment_file"]}),
        lambda: check_out(values["deployment_file"], DEPLOYMENT_FILE),
        lambda: check_stack(values["stack"], server, load_once()),
        lambda: read_request(_declare(), options),
        lambda: check_names(option_fields(_declare(), options), ENGINES, server),
    )


def _fields_of(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[InputError]]:
    options, errors = {**values, "inventory": None}, []
    try:
        options["inventory"] = parse_inventory(values["inventory"] or [])
    except InputError as error:
        errors.append(error)
    if sum(values[name] is not None for name in LOADS) != 1:
        names = ("concurrency", "rate", "users")
        errors.append(InputError("concurrency", "give exactly one of concurrency, rate and users", names))
        options |= {"users": 1.0, "request_rate_per_s": None, "concurrency": None}
    elif values["concurrency"] is not None:
        options |= {"users": values["concurrency"], "think_time_s": values["think_time_s"] or 0.0}
    return options, errors


@with_check(_errors)
@with_options(
    lambda: request_options(_declare()), concurrency="workload.users", reference="references", stack="stack"
)
def recommend(
    options: dict[str, Any],
    *,
    concurrency: Annotated[float | None, typer.Option(help="Requests in flight at the peak.")] = None,
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
    fields, errors = _fields_of(options | {"concurrency": concurrency})
    if errors:
        raise join_errors(errors)
    request = read_request(
        _declare(),
        fields,
        references=read_references_table(reference).records() if reference else [],
        stack=stack or None,
        n_rejection=N_REJECTION_JSON if as_json else 0,
    )
    require_with("deployment", request.deployment, {DEPLOYMENT_FILE: deployment_file})
    check_out(deployment_file, DEPLOYMENT_FILE)
    response = _ask_service(server, request) if server else _recommend(request)
    for warning in response["warnings"]:
        warn(warning)
    artefact = response["entries"][0]["deployment"] if response["entries"] else None
    if artefact and deployment_file:
        write_text(artefact, deployment_file, DEPLOYMENT_FILE)
        note(f"{request.deployment} of the first entry is written to {deployment_file}{_left_to_fill_in(artefact)}")
    if as_json:
        print(json.dumps(response))
        return
    print(recommendation_text(response, why=why), end="")
    if artefact and not deployment_file:
        print(f"\n{artefact}", end="")


def _left_to_fill_in(artefact: str) -> str:
    return "; its first lines say what is left to fill in" if "# to fill in" in artefact else ""


def _recommend(request: RecommendationRequest) -> dict[str, Any]:
    from roofcast.serving.recommend.api.recommendation_service import answer_recommendation

    service = open_service()
    request = with_model(request, read_model(str(request.model), service.catalog))
    with spinner("searching"):
        load_predictor(service)
        return answer_recommendation(
            request, service.catalog, service.active_model, service.stacks, today()
        ).model_dump(mode="json")


def _ask_service(url: str, request: RecommendationRequest) -> dict[str, Any]:
    request = with_model(request, read_served_model(str(request.model), url))
    fields: Any = request.model_dump(mode="json", exclude_unset=True)
    with ask(url) as client:
        return dict(client.recommend(**fields))
