"""``/v1/drift``: the predictor against measurements that it has not learnt, and new ones against earlier ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Query

from roofcast.serving.defaults import DEFAULT_LEVEL
from roofcast.serving.drift.import_drift import report_days, report_import
from roofcast.serving.http.access import READ
from roofcast.serving.http.dependencies import Parts, Viewer
from roofcast.serving.http.guarded_routes import GuardedRoute
from roofcast.serving.http.schemas.resources import Selector
from roofcast.serving.request_fields import Level
from roofcast.training.drift.drift_report import MAX_CHANGE, DriftReport

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import Added

router = APIRouter(tags=["measurements"], route_class=GuardedRoute)

DRIFT_PATH: Final = "/v1/drift"


def drift_url(added: Added) -> str | None:
    """Return the path at which an import is compared with the predictor; None if it stored and claimed no row."""
    is_comparable = added.import_id and added.n_new + added.n_claimed
    return f"{DRIFT_PATH}?import_id={added.import_id}" if is_comparable else None


@router.get(DRIFT_PATH, dependencies=READ)
def get_drift(
    service: Parts,
    viewer: Viewer,
    *,
    days: Annotated[
        float | None,
        Query(gt=0, le=36_500, description="Of the last so many days by import; `ROOFCAST_DRIFT_DAYS` by default."),
    ] = None,
    import_id: Annotated[Selector | None, Query(description="Rows of one import instead.")] = None,
    level: Annotated[Level, Query(description="Probability of the intervals.")] = DEFAULT_LEVEL,
    max_change: Annotated[
        float, Query(gt=1, le=1e6, description="Median ratio of repeats from which it is drift, however few.")
    ] = MAX_CHANGE,
) -> DriftReport:
    """Compare imported rows with the predictor, and with earlier measurements of the same configurations.

    These are rows that the caller may list. Rows that the predictor has learnt do not judge it. Of many rows a sample
    is compared.
    """
    if import_id is not None:
        return report_import(service.store, service.compared_models, import_id, level, max_change, seen_by=viewer)
    return report_days(
        service.store, service.compared_models, days or service.settings.drift_days, level, max_change, seen_by=viewer
    )
