"""``POST /v1/recommendations``: the main job."""

from __future__ import annotations

from fastapi import APIRouter

from roofcast.data.catalog import Catalog
from roofcast.data.specs import ModelSpec
from roofcast.serving.demand import Constraints, Demand
from roofcast.serving.dependencies import Bench, Loaded
from roofcast.serving.recommender import Entry, Recommendation, recommend
from roofcast.serving.schemas import (
    ConstraintsRequest,
    EntryResponse,
    MetricResponse,
    RecommendationRequest,
    RecommendationResponse,
    RejectionResponse,
)
from roofcast.serving.slo import parse_limit

router = APIRouter(tags=["recommendations"])


@router.post("/v1/recommendations")
def post_recommendation(request: RecommendationRequest, bench: Bench, loaded: Loaded) -> RecommendationResponse:
    """Rank hardware and configuration by cost under the limits.

    An empty ranking is an answer: the rejections say what stood in the way, the nearest miss first.
    """
    if isinstance(request.model, str):
        model = bench.model(request.model)
    else:
        model = bench.model(request.model.name, request.model.config)
    catalog = bench.catalog
    workload = request.workload
    demand = Demand(
        workload.n_input_token,
        workload.n_output_token,
        workload.users,
        workload.request_rate_per_s,
        tuple(parse_limit(text) for text in request.limits),
    )
    result = recommend(
        loaded.bundle,
        model,
        catalog,
        demand,
        constraints_of(request.constraints, catalog),
        level=request.level,
        n_entry=request.n_entry,
    )
    return response_of(result, model, request.level, loaded.champion.version, request.n_rejection)


def constraints_of(request: ConstraintsRequest, catalog: Catalog) -> Constraints:
    """Return the constraints, with accelerator names resolved."""
    return Constraints(
        providers=frozenset(request.providers),
        regions=frozenset(request.regions),
        accelerators=frozenset(catalog.accelerator(name).id for name in request.accelerators),
        pricing=frozenset(request.pricing),
        max_usd_per_h=request.max_usd_per_h,
        engine=request.engine,
        weight_precision=request.weight_precision or "",
        kv_precision=request.kv_precision or "",
    )


def response_of(
    result: Recommendation, model: ModelSpec, level: float, version: str, n_rejection: int
) -> RecommendationResponse:
    """Return a recommendation as it goes over HTTP."""
    return RecommendationResponse(
        model=model.id,
        level=level,
        predictor_version=version,
        n_candidate=result.n_candidate,
        n_offer=result.n_offer,
        entries=[_entry(rank, entry) for rank, entry in enumerate(result.entries, start=1)],
        n_rejected=len(result.rejections),
        rejections=[
            RejectionResponse(
                accelerator=rejection.candidate.accelerator,
                tensor_parallel=rejection.candidate.tp,
                reason=rejection.reason,
                detail=rejection.detail,
                excess=rejection.excess,
            )
            for rejection in result.rejections[:n_rejection]
        ],
    )


def _entry(rank: int, entry: Entry) -> EntryResponse:
    offer = entry.offer
    return EntryResponse(
        rank=rank,
        provider=offer.provider,
        region=offer.region,
        instance_type=offer.instance_type,
        pricing=offer.pricing,
        price_usd_per_h=float(offer.price_usd_per_h),
        price_as_of=offer.as_of,
        accelerator=entry.candidate.accelerator,
        tensor_parallel=entry.candidate.tp,
        users_per_replica=entry.users_per_replica,
        load_per_replica=entry.load_per_replica,
        n_replica=entry.n_replica,
        n_instance=entry.n_instance,
        cost_usd_per_h=entry.cost_usd_per_h,
        cost_usd_per_month=entry.cost_usd_per_month,
        cost_usd_per_million_output_token=entry.cost_usd_per_million_output_token,
        cost_usd_per_million_token=entry.cost_usd_per_million_token,
        predictions=[
            MetricResponse(
                metric=m.metric, statistic=m.statistic, value=m.value, low=m.low, high=m.high, limit=m.limit
            )
            for m in entry.predictions
        ],
        surely_meets_limits=entry.surely_meets_limits,
        memory_used_byte=entry.memory_used_byte,
        memory_usable_byte=entry.memory_usable_byte,
        bottleneck=entry.bottleneck,
        outside=entry.outside,
        outside_columns=list(entry.outside_columns),
    )
