"""The command that ranks hardware by cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from roofcast.serving.cli.arguments.options import request_options, require_with, with_model, with_options
from roofcast.serving.cli.arguments.request_check import Problems, check_calibration, check_out, check_search
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
from roofcast.serving.cli.files import read_model, read_references_table, write_text
from roofcast.serving.cli.remote import ask, read_served_model
from roofcast.serving.cli.text.recommendation_text import recommendation_text

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
        require_with("deployment", options["deployment"], {DEPLOYMENT_FILE: deployment_file})
        check_out(deployment_file, DEPLOYMENT_FILE)
    check_calibration(problems, None, None, stack, server)
    more = {"stack": stack or None, "n_rejection": N_REJECTION_JSON if as_json else 0}
    references = reference, read_references_table
    request = check_search(problems, _declare(), options, references, server, ENGINES, **more)
    response = _ask_service(server, request) if server else _recommend(request)
    for warning in response["warnings"]:
        warn(warning)
    artefact = response["entries"][0]["deployment"] if response["entries"] else None
    if artefact and deployment_file:
        write_text(artefact, deployment_file, DEPLOYMENT_FILE)
        left = "; its first lines say what is left to fill in" if "# to fill in" in artefact else ""
        note(f"{request.deployment} of the first entry is written to {deployment_file}{left}")
    if as_json:
        print(json.dumps(response))
        return
    print(recommendation_text(response, today(), why=why), end="")
    if artefact and not deployment_file:
        print(f"\n{artefact}", end="")


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
