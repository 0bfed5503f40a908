"""Selection of the next measurements among models on the offered accelerators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError
from roofcast.data.specs import ModelSpec, Offer
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.descriptors.precisions import served_precision
from roofcast.serving.predict.answers import ANSWER_METRICS
from roofcast.serving.predict.row_checks import capacity_problems
from roofcast.serving.recommend.search.configurations import enumerate_replicas
from roofcast.training.explain.measure_next import rank_measurements
from roofcast.training.lifecycle.bundle import ModelBundle

MAX_SETTING: Final = 800
"""Most settings compared: time and memory grow with their square."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Workload of all settings."""

    n_input_token: float = 1024.0
    n_output_token: float = 256.0
    concurrency: float = 16.0


def settings_of(
    models: Sequence[ModelSpec], catalog: Catalog, offers: Sequence[Offer], workload: Workload
) -> pd.DataFrame:
    """Return one question for each way to run each model: accelerator on offer, engine, and tensor parallelism.

    Parameters
    ----------
    models
        Of interest.
    catalog
        That knows the accelerators.
    offers
        Which of them can be had, and how many together.
    workload
        The same for all.
    """
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


def measure_next(
    models: Sequence[ModelSpec],
    catalog: Catalog,
    bundle: ModelBundle,
    *,
    accelerators: Iterable[str] = (),
    workload: Workload | None = None,
    n: int = 5,
) -> tuple[list[dict[str, Any]], int, int]:
    """Return the measurements to take, the most useful first, and the numbers of settings compared and in all.

    Parameters
    ----------
    models
        Whose predictions are to become surer; each is run wherever it fits.
    catalog
        That knows accelerators and offers.
    bundle
        Whose predictions they are.
    accelerators
        Ids that count; all on offer if there are none.
    workload
        At which to compare; None for the usual.
    n
        Measurements at most.

    Raises
    ------
    InputError
        If nothing on offer can run any of the models.
    """
    wanted = set(accelerators)
    offers = [offer for offer in catalog.offers if not wanted or offer.accelerator in wanted]
    table = settings_of(models, catalog, offers, workload or Workload())
    specs = {model.id: model for model in models}
    if len(table):
        estimate = bundle.predictor.predict_ratio(describe(table, specs, catalog.accelerators), ()).estimate
        table = table[[problem is None for problem in capacity_problems(estimate)]].reset_index(drop=True)
    if table.empty:
        raise InputError("accelerator", "nothing on offer can run the models asked about; ask for others")
    spread = np.unique(np.linspace(0, len(table) - 1, min(len(table), MAX_SETTING)).astype(int))
    compared = table.iloc[spread].reset_index(drop=True)
    metrics = [metric for metric in ANSWER_METRICS if metric in bundle.predictor.metrics_]
    picked = rank_measurements(bundle.predictor, describe(compared, specs, catalog.accelerators), metrics, n)
    shown = ["model", "accelerator", "n_accelerator", "engine", "weight_precision", *asdict(Workload())]
    rows = [
        {
            "rank": rank,
            **compared.loc[pick.row, shown].to_dict(),
            **{f"{metric}_narrower": share for metric, share in pick.narrower.items()},
        }
        for rank, pick in enumerate(picked, 1)
    ]
    return rows, len(compared), len(table)
