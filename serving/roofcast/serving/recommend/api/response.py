"""A recommendation as it goes over HTTP."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from roofcast.data.specs import ModelSpec, Offer
from roofcast.serving.recommend.answer.basis import Basis
from roofcast.serving.recommend.answer.recommendation import Recommendation, Rejection, Replica
from roofcast.serving.recommend.api.models import (
    BasisResponse,
    CertaintyResponse,
    EntryResponse,
    FleetResponse,
    FrontResponse,
    RecommendationRequest,
    RecommendationResponse,
    RejectionResponse,
)
from roofcast.serving.recommend.demand.slo import parse_limit

FROM_PROMPTS: Final = frozenset({"ttft_s", "nttft_s_per_token", "e2e_s"})
"""Metrics that hold the time of a request's own prefill."""

TAIL: Final = frozenset({"p90", "p95", "p99"})
"""Statistics of slow requests."""

LONG_PROMPT: Final = 1.5
"""A 95th percentile of the prompts that is as many times their mean makes slow requests."""

Values = dict[str, Any]
Shown = TypeVar("Shown", bound=BaseModel)


def response_of(
    result: Recommendation, model: ModelSpec, request: RecommendationRequest, basis: Basis, warnings: list[str]
) -> RecommendationResponse:
    """Return a recommendation as it goes over HTTP, with its id."""
    entries = [_shown(EntryResponse, entry, rank=rank) for rank, entry in enumerate(result.entries, start=1)]
    return RecommendationResponse(
        id=basis.name(request.model_dump(mode="json")),
        basis=BasisResponse(**dataclasses.asdict(basis)),
        model=model.id,
        confidence=request.confidence,
        level=request.level,
        predictor_version=basis.predictor_version,
        n_configuration=result.n_configuration,
        n_candidate=result.n_candidate,
        n_offer=result.n_offer,
        entries=entries,
        fleet=[_shown(FleetResponse, part) for part in result.fleet],
        runner_up_usd_per_h=result.runner_up_usd_per_h,
        cost_of_confidence=[
            CertaintyResponse(confidence=confidence, cost_usd_per_h=cost)
            for confidence, cost in result.cost_of_confidence.items()
        ],
        pareto=[_shown(FrontResponse, point) for point in result.pareto],
        n_rejected=result.n_rejected,
        rejections=[_rejection(rejection) for rejection in result.rejections],
        families=[_rejection(rejection) for rejection in result.families],
        warnings=[*warnings, *_long_prompts(request)],
    )


def _long_prompts(request: RecommendationRequest) -> list[str]:
    """Return a warning if a limit is on slow requests, long prompts make such, and no forecast knows of these."""
    demand = request.workload.demand(tuple(parse_limit(text) for text in request.limits))
    unaware = [one.text for one in demand.limits if one.metric in FROM_PROMPTS and one.statistic in TAIL]
    prompt = demand.lengths[0]
    if not unaware or not (long := prompt.percentile("p95")) > LONG_PROMPT * prompt.mean:
        return []
    return [
        f"workload.n_input_token: every prompt is taken to have the mean length, {prompt.mean:.0f} tokens, so "
        f"{', '.join(unaware)} does not know of the long ones; for the worst case ask again with n_input_token "
        f"{long:.0f}, their p95, as a number"
    ]


def _shown(kind: type[Shown], found: Any, **more: Any) -> Shown:
    own = {name: value for name, value in _fields(found).items() if name in kind.model_fields}
    if "predictions" in own:
        own["predictions"] = [_fields(metric) for metric in found.predictions]
    return kind.model_validate({**_offer(found.offer), **_replica(found.replica), **own, **more})


def _fields(found: Any) -> Values:
    return {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}


def _rejection(rejection: Rejection) -> RejectionResponse:
    return RejectionResponse.model_validate({
        **_replica(rejection.replica),
        "reason": rejection.reason,
        "detail": rejection.detail,
        "excess": rejection.excess if math.isfinite(rejection.excess) else None,
    })  # fmt: skip


def _replica(replica: Replica) -> Values:
    return {
        "accelerator": replica.accelerator,
        "engine": replica.engine,
        "weight_precision": replica.weight_precision,
        "tensor_parallel": replica.tp,
        "pipeline_parallel": replica.pp,
        "data_parallel": replica.dp,
        "expert_parallel": replica.ep,
    }


def _offer(offer: Offer) -> Values:
    return {
        "provider": offer.provider,
        "region": offer.region,
        "instance_type": offer.instance_type,
        "pricing": offer.pricing,
        "price_usd_per_h": float(offer.price_usd_per_h),
        "price_as_of": offer.as_of,
    }
