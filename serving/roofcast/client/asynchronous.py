"""The client for programs that run in an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack, overload

import httpx

from roofcast.client import bulk, calls
from roofcast.client.answers import (
    AcceleratorSpec,
    CampaignInfo,
    ExplanationsResponse,
    MeasurementsAdded,
    ModelSpec,
    Offer,
    OwnCampaign,
    PredictionResponse,
    PredictorResponse,
    ReadinessResponse,
    RecommendationResponse,
    RetrainingResponse,
    ScoreboardResponse,
)
from roofcast.client.calls import Call, Row
from roofcast.client.errors import UnreachableError
from roofcast.client.requests import (
    ExplanationRequest,
    MeasurementsRequest,
    ModelConfig,
    PromotionRequest,
    RecommendationRequest,
)
from roofcast.client.sending import options, read, request_of

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


class AsyncClient:
    """Asks a service, as `roofcast.client.Client` does, in an event loop.

    Parameters
    ----------
    base_url
        Where the service is, such as ``http://127.0.0.1:8000``.
    api_key
        As `roofcast keys create` shows it; None to send none.
    timeout_s
        Longest wait to connect, and for each part of an answer.
    retries
        How often a request is sent again: after a connection that failed, and at 429 and 503 when the service says.
        What would then be done twice is sent again only if it was not taken.
    transport
        What httpx sends with; None for its own.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        api_key: str | None = None,
        *,
        timeout_s: float = 60.0,
        retries: int = 3,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._retries = retries
        self._http = httpx.AsyncClient(**options(base_url, api_key, timeout_s, retries, transport))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, call: Call[T]) -> T:
        try:
            response = await self._http.request(**request_of(call, self._retries))
        except httpx.TransportError as error:
            raise UnreachableError(f"{type(error).__name__}: {error}") from error
        return read(call, response)

    async def recommend(self, **request: Unpack[RecommendationRequest]) -> RecommendationResponse:
        """Rank hardware and configuration by cost under the limits."""
        return await self._send(calls.recommend(request))

    @overload
    async def predict(
        self,
        rows: Sequence[Row],
        *,
        models: Sequence[ModelConfig] = (),
        references: Sequence[Row] = (),
        level: float | None = None,
    ) -> PredictionResponse: ...

    @overload
    async def predict(self, rows: pd.DataFrame, *, level: float | None = None) -> pd.DataFrame: ...

    async def predict(
        self,
        rows: Sequence[Row] | pd.DataFrame,
        *,
        models: Sequence[ModelConfig] = (),
        references: Sequence[Row] = (),
        level: float | None = None,
    ) -> PredictionResponse | pd.DataFrame:
        """Predict rows of questions, as many as there are; a table comes back as a table.

        Parameters
        ----------
        models
            Configurations of models that only these rows know.
        references
            Measurements that the predictions are to know.
        level
            Probability of the intervals; None for the service's own.
        """
        if not isinstance(rows, Sequence):
            return await self._send(bulk.table_call(rows, level))
        parts = bulk.prediction_calls(rows, models, references, level)
        return bulk.joined([await self._send(call) for call in parts])

    async def explain(self, **request: Unpack[ExplanationRequest]) -> ExplanationsResponse:
        """Tell of each row where its time goes, what bounds it, what fits, and what moved its prediction."""
        return await self._send(calls.explain(request))

    async def add_measurements(self, **request: Unpack[MeasurementsRequest]) -> MeasurementsAdded:
        """Keep measured rows, and the models that they bring along: all of them, or none."""
        return await self._send(calls.add_measurements(request))

    async def measurements(self, campaign: str | None = None, offset: int = 0, limit: int = 100) -> list[Row]:
        """List the measurements kept by the service."""
        return await self._send(calls.measurements(campaign, offset, limit))

    async def retrain(self) -> RetrainingResponse:
        """Queue a retraining."""
        return await self._send(calls.retrain())

    async def retraining(self, retraining_id: str) -> RetrainingResponse:
        """Return a retraining and, once it is done, its report."""
        return await self._send(calls.retraining(retraining_id))

    async def retrainings(self, limit: int = 100) -> list[RetrainingResponse]:
        """List the retrainings, the latest first."""
        return await self._send(calls.retrainings(limit))

    async def wait_for_retraining(
        self, retraining_id: str, *, timeout_s: float = 3600.0, poll_s: float = 1.0
    ) -> RetrainingResponse:
        """Return a retraining once it is done or has failed.

        Raises
        ------
        TimeoutError
            If it goes on longer than `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        while (found := await self.retraining(retraining_id))["state"] not in {"done", "failed"}:
            if time.monotonic() > deadline:
                raise TimeoutError(f"retraining {retraining_id} is {found['state']} after {timeout_s:g} s")
            await asyncio.sleep(poll_s)
        return found

    async def models(self) -> list[ModelSpec]:
        """List the models of the catalogue and those registered at the service."""
        return await self._send(calls.models())

    async def accelerators(self) -> list[AcceleratorSpec]:
        """List the accelerators."""
        return await self._send(calls.accelerators())

    async def offers(self) -> list[Offer]:
        """List the dated prices."""
        return await self._send(calls.offers())

    async def campaigns(self) -> list[CampaignInfo | OwnCampaign]:
        """List the campaigns of measurements."""
        return await self._send(calls.campaigns())

    async def predictor(self) -> PredictorResponse:
        """Return the predictor in service: version, data and held-out errors."""
        return await self._send(calls.predictor())

    async def scoreboard(self) -> ScoreboardResponse:
        """Return how good the predictor in service is, and the figures of the protocols run at the service."""
        return await self._send(calls.scoreboard())

    async def promote(self, **request: Unpack[PromotionRequest]) -> PredictorResponse:
        """Put a version of the registry into service, as after a bad retraining."""
        return await self._send(calls.promote(request))

    async def roll_back(self) -> PredictorResponse:
        """Put the version before the champion back into service, and asked again the one before that."""
        return await self._send(calls.roll_back())

    async def ready(self) -> ReadinessResponse:
        """Return how the service's parts are; raises `NotReadyError` if it does not predict."""
        return await self._send(calls.ready())

    async def health(self) -> dict[str, str]:
        """Return whether the process answers."""
        return await self._send(calls.health())

    async def metrics(self) -> str:
        """Return the service's metrics, as Prometheus reads them."""
        return await self._send(calls.metrics())
