"""The client for programs that wait for each answer."""

from __future__ import annotations

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


class Client:
    """Asks a service; answers are dictionaries, errors are of `roofcast.client.errors`.

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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._retries = retries
        self._http = httpx.Client(**options(base_url, api_key, timeout_s, retries, transport))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _send(self, call: Call[T]) -> T:
        try:
            response = self._http.request(**request_of(call, self._retries))
        except httpx.TransportError as error:
            raise UnreachableError(f"{type(error).__name__}: {error}") from error
        return read(call, response)

    def recommend(self, **request: Unpack[RecommendationRequest]) -> RecommendationResponse:
        """Rank hardware and configuration by cost under the limits."""
        return self._send(calls.recommend(request))

    @overload
    def predict(
        self,
        rows: Sequence[Row],
        *,
        models: Sequence[ModelConfig] = (),
        references: Sequence[Row] = (),
        level: float | None = None,
    ) -> PredictionResponse: ...

    @overload
    def predict(self, rows: pd.DataFrame, *, level: float | None = None) -> pd.DataFrame: ...

    def predict(
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
            return self._send(bulk.table_call(rows, level))
        parts = bulk.prediction_calls(rows, models, references, level)
        return bulk.joined([self._send(call) for call in parts])

    def explain(self, **request: Unpack[ExplanationRequest]) -> ExplanationsResponse:
        """Tell of each row where its time goes, what bounds it, what fits, and what moved its prediction."""
        return self._send(calls.explain(request))

    def add_measurements(self, **request: Unpack[MeasurementsRequest]) -> MeasurementsAdded:
        """Keep measured rows, and the models that they bring along: all of them, or none."""
        return self._send(calls.add_measurements(request))

    def measurements(self, campaign: str | None = None, offset: int = 0, limit: int = 100) -> list[Row]:
        """List the measurements kept by the service."""
        return self._send(calls.measurements(campaign, offset, limit))

    def retrain(self) -> RetrainingResponse:
        """Queue a retraining."""
        return self._send(calls.retrain())

    def retraining(self, retraining_id: str) -> RetrainingResponse:
        """Return a retraining and, once it is done, its report."""
        return self._send(calls.retraining(retraining_id))

    def retrainings(self, limit: int = 100) -> list[RetrainingResponse]:
        """List the retrainings, the latest first."""
        return self._send(calls.retrainings(limit))

    def wait_for_retraining(
        self, retraining_id: str, *, timeout_s: float = 3600.0, poll_s: float = 1.0
    ) -> RetrainingResponse:
        """Return a retraining once it is done or has failed.

        Raises
        ------
        TimeoutError
            If it goes on longer than `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        while (found := self.retraining(retraining_id))["state"] not in {"done", "failed"}:
            if time.monotonic() > deadline:
                raise TimeoutError(f"retraining {retraining_id} is {found['state']} after {timeout_s:g} s")
            time.sleep(poll_s)
        return found

    def models(self) -> list[ModelSpec]:
        """List the models of the catalogue and those registered at the service."""
        return self._send(calls.models())

    def accelerators(self) -> list[AcceleratorSpec]:
        """List the accelerators."""
        return self._send(calls.accelerators())

    def offers(self) -> list[Offer]:
        """List the dated prices."""
        return self._send(calls.offers())

    def campaigns(self) -> list[CampaignInfo | OwnCampaign]:
        """List the campaigns of measurements."""
        return self._send(calls.campaigns())

    def predictor(self) -> PredictorResponse:
        """Return the predictor in service: version, data and held-out errors."""
        return self._send(calls.predictor())

    def scoreboard(self) -> ScoreboardResponse:
        """Return how good the predictor in service is, and the figures of the protocols run at the service."""
        return self._send(calls.scoreboard())

    def promote(self, **request: Unpack[PromotionRequest]) -> PredictorResponse:
        """Put a version of the registry into service, as after a bad retraining."""
        return self._send(calls.promote(request))

    def roll_back(self) -> PredictorResponse:
        """Put the version before the champion back into service, and asked again the one before that."""
        return self._send(calls.roll_back())

    def ready(self) -> ReadinessResponse:
        """Return how the service's parts are; raises `NotReadyError` if it does not predict."""
        return self._send(calls.ready())

    def health(self) -> dict[str, str]:
        """Return whether the process answers."""
        return self._send(calls.health())

    def metrics(self) -> str:
        """Return the service's metrics, as Prometheus reads them."""
        return self._send(calls.metrics())
