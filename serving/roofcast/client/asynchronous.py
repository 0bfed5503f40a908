"""Asynchronous client; the build makes `roofcast.client.blocking` of it (`serving/codegen/client_build.py`)."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack, overload
from urllib.parse import quote

import httpx

from roofcast.client import answers, bulk, requests
from roofcast.client.calls import Call, Row, Target, client_options, delete, get, post, put, upload
from roofcast.client.errors import UnreachableError

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


class AsyncClient:
    """Client of a roofcast service; it returns dictionaries and raises the errors of `roofcast.client.errors`.

    - `base_url`: Such as ``http://127.0.0.1:8000``.
    - `api_key`: As `roofcast keys create` prints it; None to send none.
    - `timeout_s`: Longest wait for a connection, and for each part of a response.
    - `retries`: After a failed connection, 429 and 503; of a request that is not idempotent only if the service did
      not act.
    - `transport`: Of httpx; None for its own.
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
        self._http = httpx.AsyncClient(**client_options(base_url, api_key, timeout_s, retries, transport))

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
            response = await self._http.request(**call.request(self._retries))
        except httpx.TransportError as error:
            raise UnreachableError(f"{type(error).__name__}: {error}") from error
        return call.result(response)

    async def recommend(self, **request: Unpack[requests.RecommendationRequest]) -> answers.RecommendationResponse:
        """Rank hardware and configurations by cost under the limits."""
        return await self._send(post("/v1/recommendations", request))

    @overload
    async def predict(
        self,
        rows: Sequence[Row],
        *,
        models: Sequence[requests.ModelConfig] = (),
        references: Sequence[Row] = (),
        stack: str | None = None,
        operator: str | None = None,
        level: float | None = None,
    ) -> answers.PredictionResponse: ...

    @overload
    async def predict(
        self,
        rows: pd.DataFrame,
        *,
        stack: str | None = None,
        operator: str | None = None,
        level: float | None = None,
    ) -> pd.DataFrame: ...

    async def predict(
        self,
        rows: Sequence[Row] | pd.DataFrame,
        *,
        models: Sequence[requests.ModelConfig] = (),
        references: Sequence[Row] = (),
        stack: str | None = None,
        operator: str | None = None,
        level: float | None = None,
    ) -> answers.PredictionResponse | pd.DataFrame:
        """Predict any number of rows; a table is answered with a table.

        - `models`: Configurations of models that are not in the catalogue.
        - `references`: Reference measurements to condition the predictions on.
        - `stack`: Name of a stack profile whose rows condition them too, or of a measured stack that they are about.
        - `operator`: Whose stack the predictions are about where none is named: competent or any.
        - `level`: Probability of the intervals; None for the service's default.
        """
        given = {"stack": stack, "operator": operator, "level": level}
        if not isinstance(rows, Sequence):
            return bulk.join_tables([await self._send(call) for call in bulk.table_calls(rows, **given)])
        calls = bulk.prediction_calls(rows, models, references, **given)
        return bulk.join_responses([await self._send(call) for call in calls])

    async def predict_training(
        self, **request: Unpack[requests.JobPredictionRequest]
    ) -> answers.JobPredictionResponse:
        """Predict step time, throughput, MFU and peak memory of training jobs."""
        return await self._send(post("/v1/training/predictions", request))

    async def recommend_training(
        self, **request: Unpack[requests.JobRecommendationRequest]
    ) -> answers.JobRecommendationResponse:
        """Rank hardware and plans of a training job by cost, within its deadline and budget."""
        return await self._send(post("/v1/training/recommendations", request))

    async def explain(self, **request: Unpack[requests.ExplanationRequest]) -> answers.ExplanationsResponse:
        """Explain each row: operators and their bounds, memory, and the factors of its prediction."""
        return await self._send(post("/v1/explanations", request))

    async def measure_next(
        self, **request: Unpack[requests.NextMeasurementsRequest]
    ) -> answers.NextMeasurementsResponse:
        """Rank the measurements that would narrow the intervals most, each given the ones before it."""
        return await self._send(post("/v1/next-measurements", request))

    async def add_measurements(
        self, *, compare: bool = False, claim: bool = False, **request: Unpack[requests.MeasurementsRequest]
    ) -> answers.MeasurementsAdded:
        """Store measured rows and the models that they bring along: all of them, or none.

        `compare`: wait for a comparison with predictions and earlier rows; `drift` has it later, by `import_id`.
        `claim`: make rows that API keys own the operator's; for keys of the scope admin.
        """
        return await self._send(post("/v1/measurements", request, compare=compare, claim=claim))

    async def import_file(
        self,
        file: Path,
        *,
        format_: str = "auto",
        name: str | None = None,
        campaign: str | None = None,
        values: Mapping[str, object] | None = None,
        dry_run: bool = False,
        claim: bool = False,
        compare: bool = False,
    ) -> answers.FileAdded:
        """Import the file of a benchmark client as it is: all of its rows, or none.

        - `format_`: A name of `roofcast formats`; detected by default.
        - `name`: Name of the file for messages; its own by default.
        - `campaign`: The format's name by default.
        - `values`: Value by column, for what the file does not hold.
        - `dry_run`: Validate and count only.
        - `claim`: Make rows that API keys own the operator's; for keys of the scope admin.
        - `compare`: Wait for a comparison with predictions and earlier rows; `drift` has it later, by `import_id`.
        """
        params = {"format": format_, "name": name, "campaign": campaign, "dry_run": dry_run, "claim": claim}
        return await self._send(upload("/v1/measurements/files", file, values, **params, compare=compare))

    async def add_training_measurements(
        self, *, compare: bool = True, claim: bool = False, **request: Unpack[requests.JobMeasurementsRequest]
    ) -> answers.JobMeasurementsAdded:
        """Store measured training jobs as `add_measurements` does: all of them, or none."""
        return await self._send(post("/v1/training/measurements", request, compare=compare, claim=claim))

    async def import_training_file(
        self,
        file: Path,
        *,
        name: str | None = None,
        campaign: str | None = None,
        values: Mapping[str, object] | None = None,
        dry_run: bool = False,
        claim: bool = False,
        compare: bool = True,
    ) -> answers.JobMeasurementsAdded:
        """Import a CSV file of measured training jobs, or a log of torchtitan or Megatron-LM: all rows, or none.

        - `name`: Name of the file for messages; its own by default.
        - `campaign`: Campaign of rows without one.
        - `values`: Value by column, for what the file does not hold.
        - `dry_run`: Validate and count only.
        - `claim`: Make rows that API keys own the operator's; for keys of the scope admin.
        - `compare`: Compare the rows with predictions.
        """
        params = {"name": name, "campaign": campaign, "dry_run": dry_run, "claim": claim, "compare": compare}
        return await self._send(upload("/v1/training/measurements/files", file, values, **params))

    async def training_measurements(
        self, campaign: str | None = None, offset: int = 0, limit: int = 100
    ) -> list[Row]:
        """List the measured training jobs stored at the service."""
        return await self._send(get("/v1/training/measurements", campaign=campaign, offset=offset, limit=limit))

    async def measurements(self, campaign: str | None = None, offset: int = 0, limit: int = 100) -> list[Row]:
        """List the measurements stored at the service."""
        return await self._send(get("/v1/measurements", campaign=campaign, offset=offset, limit=limit))

    async def add_stack(self, **request: Unpack[requests.StackRequest]) -> answers.ProfileAdded:
        """Add rows to a stack profile, which is made if it is new: all of them, or none."""
        return await self._send(post("/v1/stacks", request))

    async def stacks(self) -> list[answers.StackSummary]:
        """List the stack profiles."""
        return await self._send(get("/v1/stacks"))

    async def measured_stacks(self) -> list[answers.MeasuredStackSummary]:
        """List the stacks of the shipped measurements that the predictor knows."""
        return await self._send(get("/v1/measured-stacks"))

    async def stack(self, name: str, level: float = 0.8, n_next: int = 3) -> answers.StackReport:
        """Return a stack profile's errors without it and with its other runs, and what to measure next for it."""
        return await self._send(get(f"/v1/stacks/{quote(name, safe='')}", level=level, n_next=n_next))

    async def remove_stack(self, name: str) -> answers.StackRemoved:
        """Remove a stack profile."""
        return await self._send(delete(f"/v1/stacks/{quote(name, safe='')}"))

    async def imports(self) -> list[answers.ImportSummary]:
        """List the imports of measurements, the latest first."""
        return await self._send(get("/v1/measurements/imports"))

    async def drift(
        self, days: float | None = None, import_id: str | None = None, level: float = 0.9, max_change: float = 1.5
    ) -> answers.DriftReport:
        """Compare imported rows with the predictor and with earlier measurements of the same configurations."""
        return await self._send(get("/v1/drift", days=days, import_id=import_id, level=level, max_change=max_change))

    async def withdraw_measurements(
        self, **request: Unpack[requests.MeasurementSelection]
    ) -> answers.MeasurementsChanged:
        """Withdraw the measurements of one import, campaign or key: the next retraining does without them."""
        return await self._send(post("/v1/measurements/withdrawals", request))

    async def restore_measurements(
        self, **request: Unpack[requests.MeasurementSelection]
    ) -> answers.MeasurementsChanged:
        """Undo withdrawals of one import, campaign or key; an operator's needs a key of the scope admin."""
        return await self._send(post("/v1/measurements/restorations", request))

    async def confirm_measurements(
        self, **request: Unpack[requests.MeasurementSelection]
    ) -> answers.MeasurementsChanged:
        """Confirm measurements in quarantine: the next retraining uses them."""
        return await self._send(post("/v1/measurements/confirmations", request))

    async def retrain(self, target: Target = "inference") -> answers.RetrainingResponse:
        """Queue a retraining of the predictor of inference or of training jobs."""
        return await self._send(post("/v1/retrainings", {"target": target}, is_idempotent=False))

    async def retraining(self, retraining_id: str) -> answers.RetrainingResponse:
        """Return a retraining, with its report once it is done."""
        return await self._send(get(f"/v1/retrainings/{quote(retraining_id, safe='')}"))

    async def cancel_retraining(self, retraining_id: str) -> answers.RetrainingResponse:
        """Cancel a retraining that waits or runs."""
        return await self._send(post(f"/v1/retrainings/{quote(retraining_id, safe='')}/cancellation", {}))

    async def retrainings(self, limit: int = 100) -> list[answers.RetrainingResponse]:
        """List the retrainings, the latest first."""
        return await self._send(get("/v1/retrainings", limit=limit))

    async def retraining_schedule(self) -> answers.RetrainingScheduleResponse:
        """Return when the service retrains by itself."""
        return await self._send(get("/v1/retraining-schedule"))

    async def wait_for_retraining(
        self, retraining_id: str, *, timeout_s: float = 3600.0, poll_s: float = 1.0
    ) -> answers.RetrainingResponse:
        """Return a retraining once it is done, has failed or was cancelled.

        Raises `TimeoutError` if that takes longer than `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        while (record := await self.retraining(retraining_id))["state"] not in {"done", "failed", "cancelled"}:
            if time.monotonic() > deadline:
                raise TimeoutError(f"retraining {retraining_id} is {record['state']} after {timeout_s:g} s")
            await asyncio.sleep(poll_s)
        return record

    async def models(self) -> list[answers.ModelSpec]:
        """List the models of the catalogue and those registered at the service."""
        return await self._send(get("/v1/models"))

    async def remove_model(self, name: str) -> answers.ModelSpec:
        """Remove a registered model and return it."""
        return await self._send(delete(f"/v1/models/{quote(name, safe='')}"))

    async def accelerators(self) -> list[answers.AcceleratorSpec]:
        """List the accelerators."""
        return await self._send(get("/v1/accelerators"))

    async def offers(self) -> list[answers.Offer]:
        """List the dated prices."""
        return await self._send(get("/v1/offers"))

    async def campaigns(self) -> list[answers.CampaignInfo | answers.OwnCampaign]:
        """List the measurement campaigns."""
        return await self._send(get("/v1/campaigns"))

    async def campaign_report(self) -> list[answers.CampaignReport]:
        """Report the imported campaigns: rows stored, rows that training uses, and why it skips the others."""
        return await self._send(get("/v1/campaigns/report"))

    async def campaign_rows(self, name: str, limit: int = 300) -> answers.CampaignRows:
        """List measurements of a campaign, evenly spread, and whether the predictor has learnt from each."""
        return await self._send(get(f"/v1/campaigns/{quote(name, safe='')}/measurements", limit=limit))

    async def choices(self) -> answers.ChoicesResponse:
        """Return the valid names of request fields."""
        return await self._send(get("/v1/choices"))

    async def predictor(self, target: Target = "inference") -> answers.PredictorResponse:
        """Return the active predictor of a target: version, training data and held-out errors."""
        return await self._send(get("/v1/predictor", target=target))

    async def scoreboard(self) -> answers.ScoreboardResponse:
        """Return the held-out errors of the active predictor, and the figures of the evaluation protocols."""
        return await self._send(get("/v1/scoreboard"))

    async def versions(self, target: Target = "inference") -> list[answers.VersionSummary]:
        """List the versions of a target's predictor, the newest first."""
        return await self._send(get("/v1/predictor/versions", target=target))

    async def changes(self, limit: int = 100) -> list[answers.ChampionChange]:
        """List the changes of champion and challenger, the latest first, with their callers."""
        return await self._send(get("/v1/predictor/changes", limit=limit))

    async def challenger(self) -> answers.ChallengerResponse:
        """Return the version that answers beside the champion; raises `NoAnswerError` if there is none."""
        return await self._send(get("/v1/predictor/challenger"))

    async def shadow(self, **request: Unpack[requests.ChallengerRequest]) -> answers.ChallengerResponse:
        """Let a version of the registry answer a sample of the requests beside the champion, unseen."""
        return await self._send(put("/v1/predictor/challenger", request))

    async def withdraw_challenger(self) -> answers.ChallengerWithdrawn:
        """Leave the champion without a challenger; raises `NoAnswerError` if there is none."""
        return await self._send(delete("/v1/predictor/challenger"))

    async def compare_version(self, version: str, days: float | None = None) -> answers.VersionComparison:
        """Compare a version with the champion: its answers beside it, and the errors of both on measurements."""
        return await self._send(get(f"/v1/predictor/versions/{quote(version, safe='')}/comparison", days=days))

    async def promote(self, **request: Unpack[requests.PromotionRequest]) -> answers.PredictorResponse:
        """Promote a version of the registry."""
        return await self._send(put("/v1/predictor", request))

    async def roll_back(self, target: Target = "inference") -> answers.PredictorResponse:
        """Promote the version before the champion; a second rollback promotes the one before that."""
        return await self._send(post("/v1/predictor/rollback", {"target": target}, is_idempotent=False))

    async def ready(self) -> answers.ReadinessResponse:
        """Return the state of the service's parts; raises `NotReadyError` if it does not predict."""
        return await self._send(get("/readyz"))

    async def health(self) -> dict[str, str]:
        """Return whether the process answers."""
        return await self._send(get("/healthz"))

    async def metrics(self) -> str:
        """Return the service's metrics, in Prometheus' text format."""
        return await self._send(Call("GET", "/metrics", lambda response: response.text, accept="text/plain"))
