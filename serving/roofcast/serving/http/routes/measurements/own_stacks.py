"""``/v1/stacks``: profiles of the callers' own runs."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from roofcast.data.store.stack_profiles import MAX_ROW, StackSummary
from roofcast.serving.defaults import DEFAULT_LEVEL
from roofcast.serving.http.access import READ, WRITE
from roofcast.serving.http.guarded_routes import ActiveModel, GuardedRoute, Owner, Parts
from roofcast.serving.http.schemas.resources import EXAMPLE_RUN
from roofcast.serving.request_fields import InlineModelList, Level, Message, Row, Text, examples
from roofcast.serving.stacks.profiles import ProfileAdded, add_rows
from roofcast.serving.stacks.stack_choice import MeasuredStackSummary, measured_stacks
from roofcast.serving.stacks.stack_report import StackReport, stack_report


class StackRequest(Message):
    """Rows to add to a profile, as references, and the models that they bring along."""

    name: Text
    rows: Annotated[list[Row], Field(min_length=1, max_length=MAX_ROW)]
    models: InlineModelList = Field(default_factory=list)

    model_config = examples(
        {"name": "rack-1", "rows": [EXAMPLE_RUN | {"statistic": "mean", "ttft_s": 0.06, "tpot_s": 0.02}]}
    )


class StackRemoved(BaseModel):
    """Number of rows that the profile had."""

    name: str
    n_row: int


router = APIRouter(tags=["stacks"], route_class=GuardedRoute)

Name = Annotated[str, Path(max_length=100, pattern=r"^[^\x00]*$")]


@router.post("/v1/stacks", dependencies=WRITE, status_code=HTTPStatus.CREATED)
def post_stack(request: StackRequest, service: Parts, active: ActiveModel, owner: Owner) -> ProfileAdded:
    """Add rows to a stack profile of the caller's key: all of them, or none. The profile is made if it is new."""
    configs = [(model.name, model.config) for model in request.models]
    predictor = active.bundle.predictor
    return add_rows(
        service.store.stacks, service.catalogs, predictor, request.rows, configs, name=request.name, owner=owner
    )


@router.get("/v1/stacks", dependencies=READ)
def list_stacks(service: Parts, owner: Owner) -> list[StackSummary]:
    """List the profiles of the caller's key, and those that the command line of the service made."""
    return service.store.stacks.summaries(owner)


@router.get("/v1/measured-stacks", dependencies=READ)
def list_measured_stacks(active: ActiveModel) -> list[MeasuredStackSummary]:
    """List the stacks of the shipped measurements that the predictor knows: names for `stack`, besides profiles."""
    return measured_stacks(active.bundle.predictor)


@router.get("/v1/stacks/{name}", dependencies=READ)
def get_stack(
    name: Name,
    *,
    service: Parts,
    active: ActiveModel,
    owner: Owner,
    level: Annotated[Level, Query()] = DEFAULT_LEVEL,
    n_next: Annotated[int, Query(ge=0, le=20, description="Number of measurements to suggest.")] = 3,
) -> StackReport:
    """Return a profile's errors without it and with its other runs, and what to measure next for it."""
    profile = service.stacks.load_profile(service.catalog, active, owner, name)
    return stack_report(profile, active.bundle, service.catalog, level=level, n_next=n_next)


@router.delete("/v1/stacks/{name}", dependencies=WRITE)
def delete_stack(name: Name, service: Parts, owner: Owner) -> StackRemoved:
    """Remove a profile of the caller's key."""
    return StackRemoved(name=name, n_row=service.store.stacks.remove(owner, name))
