"""Choice of the next measurements: models on the accelerators on offer that narrow the intervals most."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError
from roofcast.data.specs import ModelSpec, Offer
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.descriptors.precisions import served_precision
from roofcast.serving.app_state.catalog.live_catalog import build_model
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.predict.row_checks import capacity_problems
from roofcast.serving.recommend.search.configurations import enumerate_replicas
from roofcast.serving.request_fields import Flag, Message, ModelChoice, RowValue, Text, Tokens, examples
from roofcast.training.explain.measure_next import rank_measurements

RANKED_METRICS: Final = ("ttft_s", "tpot_s", "output_throughput_token_per_s")
"""Metrics whose intervals are to narrow."""

MAX_CANDIDATE: Final = 800
"""Maximum number of candidates compared: time and memory grow with its square."""


class NextMeasurementsRequest(Message):
    """What the next measurements are to narrow: models on accelerators under a load."""

    models: Annotated[
        list[ModelChoice],
        Field(max_length=100, description="As of a recommendation; all models but variants by default."),
        Flag("--model"),
    ] = Field(default_factory=list)
    accelerators: Annotated[
        list[Text],
        Field(max_length=200, description="Accelerators to consider; all with an offer by default."),
        Flag("--accelerator"),
    ] = Field(default_factory=list)
    n_input_token: Annotated[
        Tokens, Field(description="Mean input tokens."), Flag("--n-input-token --isl", is_amount=True)
    ] = 1024
    n_output_token: Annotated[
        Tokens, Field(description="Mean output tokens."), Flag("--n-output-token --osl", is_amount=True)
    ] = 256
    concurrency: Annotated[float, Field(ge=1, le=1_000_000, description="Requests in flight."), Flag()] = 16
    n: Annotated[int, Field(ge=1, le=100, description="Number of measurements."), Flag("--n")] = 5

    model_config = examples({"models": ["llama-3.1-8b"], "n": 3})

    @property
    def workload(self) -> dict[str, float]:
        """Columns of the workload of all candidates."""
        return {name: float(getattr(self, name)) for name in ("n_input_token", "n_output_token", "concurrency")}


class NextMeasurementsResponse(BaseModel):
    """Measurements that would narrow the intervals most, each given the ones before it."""

    predictor_version: str
    n_compared: Annotated[int, Field(description="Settings that are compared, spread evenly over all.")]
    n_setting: int
    rows: list[dict[str, RowValue]]


def candidate_table(
    models: Sequence[ModelSpec], catalog: Catalog, offers: Sequence[Offer], workload: Mapping[str, float]
) -> pd.DataFrame:
    """Return one row for each model, accelerator on offer, engine and tensor parallelism."""
    rows = [
        {
            "model": model.id,
            "accelerator": replica.accelerator,
            "n_accelerator": float(replica.tp),
            "tp": float(replica.tp),
            "engine": replica.engine,
            "weight_precision": served_precision(model.weight_precision),
            "statistic": "mean",
            **workload,
        }
        for model in models
        for replica in enumerate_replicas(model, catalog.accelerators, offers)[0]
        if replica.tp == replica.n_accelerator and replica.ep == 1
    ]
    return pd.DataFrame(rows)


def _specs(request: NextMeasurementsRequest, catalog: Catalog) -> Mapping[str, ModelSpec]:
    models = [
        catalog.model(one) if isinstance(one, str) else build_model(one.name, one.config, catalog)
        for one in request.models
    ] or {spec.fold_group: spec for spec in catalog.models.values()}.values()
    return {model.id: model for model in models}


def measure_next(request: NextMeasurementsRequest, catalog: Catalog, active: LoadedModel) -> NextMeasurementsResponse:
    """Return the measurements to take, the most useful first.

    Candidates are all accelerators that the models fit on.

    Raises `InputError` if nothing on offer can run any of the models, or a configuration is no language model's;
    `UnknownNameError` if a name is unknown.
    """
    specs, predictor = _specs(request, catalog), active.bundle.predictor
    ids = {catalog.accelerator(name).id for name in request.accelerators}
    offers = [offer for offer in catalog.offers if not ids or offer.accelerator in ids]
    table = candidate_table([*specs.values()], catalog, offers, request.workload)
    if len(table):
        X = describe(table, specs, catalog.accelerators)
        estimate = predictor.predict_ratio(X, ()).estimate
        can_run = np.array([problem is None for problem in capacity_problems(X, estimate)])
        table = table[can_run & ~estimate.is_saturated].reset_index(drop=True)
    if table.empty:
        raise InputError("accelerator", "nothing on offer can run the models; choose other accelerators")
    subset = np.unique(np.linspace(0, len(table) - 1, min(len(table), MAX_CANDIDATE)).astype(int))
    compared = table.iloc[subset].reset_index(drop=True)
    metrics = [metric for metric in RANKED_METRICS if metric in predictor.metrics_]
    picks = rank_measurements(predictor, describe(compared, specs, catalog.accelerators), metrics, request.n)
    shown = ["model", "accelerator", "n_accelerator", "engine", "weight_precision", *request.workload]
    rows = [
        {
            "rank": rank,
            **compared.loc[pick.row, shown].to_dict(),
            **{f"{metric}_narrower": share for metric, share in pick.narrower.items()},
        }
        for rank, pick in enumerate(picks, 1)
    ]
    return NextMeasurementsResponse(
        predictor_version=active.champion.version, n_compared=len(compared), n_setting=len(table), rows=rows
    )
