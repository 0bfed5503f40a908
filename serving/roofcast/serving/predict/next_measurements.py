"""Choice of the next measurements: models on the accelerators on offer that narrow the intervals most."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError
from roofcast.data.specs import ModelSpec, Offer
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.descriptors.precisions import served_precision
from roofcast.serving.app_state.catalog.live_catalog import build_model
from roofcast.serving.predict.row_checks import capacity_problems
from roofcast.serving.recommend.search.configurations import enumerate_replicas
from roofcast.training.explain.measure_next import rank_measurements
from roofcast.training.lifecycle.bundles.bundle import ModelBundle

RANKED_METRICS: Final = ("ttft_s", "tpot_s", "output_throughput_token_per_s")
"""Metrics whose intervals are to narrow."""

MAX_CANDIDATE: Final = 800
"""Maximum number of candidates compared: time and memory grow with its square."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Workload of all candidates."""

    n_input_token: float = 1024.0
    n_output_token: float = 256.0
    concurrency: float = 16.0


def candidate_table(
    models: Sequence[ModelSpec], catalog: Catalog, offers: Sequence[Offer], workload: Workload
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
            **asdict(workload),
        }
        for model in models
        for replica in enumerate_replicas(model, catalog.accelerators, offers)[0]
        if replica.tp == replica.n_accelerator and replica.ep == 1
    ]
    return pd.DataFrame(rows)


def choose_models(choices: Iterable[str | Mapping[str, Any]], catalog: Catalog) -> list[ModelSpec]:
    """Return the models of names and of configurations with a name; all but variants if there are none.

    Raises `InputError` if a configuration is no language model's; `UnknownNameError` if a name is unknown.
    """
    models = [
        catalog.model(one) if isinstance(one, str) else build_model(one["name"], one["config"], catalog)
        for one in choices
    ]
    return models or list({spec.fold_group: spec for spec in catalog.models.values()}.values())


def measure_next(
    models: Sequence[ModelSpec],
    catalog: Catalog,
    bundle: ModelBundle,
    *,
    accelerators: Iterable[str] = (),
    workload: Workload | None = None,
    n: int = 5,
) -> tuple[list[dict[str, Any]], int, int]:
    """Return the measurements to take, the most useful first, and the numbers of compared and of all candidates.

    Raises `InputError` if nothing on offer can run any of the models.

    - `models`: Models whose intervals should become narrower; the candidates are all accelerators that they fit on.
    - `accelerators`: Names of the accelerators to consider; all on offer if empty.
    - `n`: Maximum number of measurements.
    """
    ids = {catalog.accelerator(name).id for name in accelerators}
    offers = [offer for offer in catalog.offers if not ids or offer.accelerator in ids]
    table = candidate_table(models, catalog, offers, workload or Workload())
    specs = {model.id: model for model in models}
    if len(table):
        X = describe(table, specs, catalog.accelerators)
        estimate = bundle.predictor.predict_ratio(X, ()).estimate
        can_run = np.array([problem is None for problem in capacity_problems(X, estimate)])
        table = table[can_run & ~estimate.is_saturated].reset_index(drop=True)
    if table.empty:
        raise InputError("accelerator", "nothing on offer can run the models; choose other accelerators")
    subset = np.unique(np.linspace(0, len(table) - 1, min(len(table), MAX_CANDIDATE)).astype(int))
    compared = table.iloc[subset].reset_index(drop=True)
    metrics = [metric for metric in RANKED_METRICS if metric in bundle.predictor.metrics_]
    picks = rank_measurements(bundle.predictor, describe(compared, specs, catalog.accelerators), metrics, n)
    shown = ["model", "accelerator", "n_accelerator", "engine", "weight_precision", *asdict(Workload())]
    rows = [
        {
            "rank": rank,
            **compared.loc[pick.row, shown].to_dict(),
            **{f"{metric}_narrower": share for metric, share in pick.narrower.items()},
        }
        for rank, pick in enumerate(picks, 1)
    ]
    return rows, len(compared), len(table)
