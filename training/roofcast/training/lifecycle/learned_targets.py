"""Learned targets: what the lifecycle knows of inference and of training jobs; the rest exists once for both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic

import pandas as pd
from typing_extensions import TypeVar

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.job_campaigns import job_catalog, load_job_campaigns
from roofcast.data.measurements.target import INFERENCE, TRAINING, Target
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.estimate_ratios import load_shipped_ratios
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.jobs.job_bundle import JobBundle
from roofcast.training.jobs.job_learner import fit_job_bundle, fit_parameters, predict_runs, score_groups
from roofcast.training.jobs.job_trial import JobTrial
from roofcast.training.jobs.run_ratios import load_shipped_run_ratios
from roofcast.training.jobs.run_set import RunSet, build_run_set
from roofcast.training.learner.ratio_model import Progress
from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.bundles.bundle_types import B
from roofcast.training.lifecycle.gate.inference_trial import InferenceTrial
from roofcast.training.lifecycle.gate.trial import Trial
from roofcast.training.lifecycle.held_out_errors import write_held_out_errors
from roofcast.training.lifecycle.inference_learner import (
    fit_bundle,
    join_stored_rows,
    predict_queries,
    run_figures,
    run_parameters,
    score_held_out,
)
from roofcast.training.lifecycle.shipped_file import ShippedFile

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LearningRows = TrainingSet | RunSet
"""Rows that a predictor learns from."""

D = TypeVar("D", bound=LearningRows, default=TrainingSet)


@dataclass(frozen=True, slots=True)
class LearnedTarget(Generic[D, B]):
    """A target of predictors.

    - `predictor_file`, `limits_file`: Shipped predictor, and shipped limits of the quarantine.
    - `join_stored`: Returns shipped and stored rows, each distinct one once, by both, the API key of each stored one
      and the catalogue.
    - `predict_sample`: Returns what predicts some rows by a bundle, and their number.
    - `score`: Returns held-out errors of a predictor that was just fitted: columns `held_out`, `group`, `metric`,
      scores.
    - `load_ratios`: Returns the shipped rows and their ratios, of which `RatioLimits` are fitted.
    - `descriptors`: Returns the queries by which MLflow serves bundles; None if it does not serve any.
    """

    bundles: type[B]
    predictor_file: ShippedFile
    limits_file: ShippedFile
    join_stored: Callable[[pd.DataFrame, pd.DataFrame, pd.Series, Catalog], D]
    fit: Callable[[D, TrainingConfig, Progress | None], B]
    trial: Callable[[Any, D], Trial]
    predict_sample: Callable[[D], tuple[Callable[[B], object], int]]
    score: Callable[[Any, D], pd.DataFrame]
    parameters: Callable[[Any], dict[str, Any]]
    load_ratios: Callable[[], tuple[pd.DataFrame, pd.DataFrame]]
    figures: Callable[[Any, D], Iterator[tuple[str, Figure]]] = lambda *_: iter(())
    store_errors: Callable[[Any, D], None] = lambda *_: None
    descriptors: Callable[[D], pd.DataFrame] | None = None
    has_challenger: bool = False

    @property
    def name(self) -> Target:
        """Name of the target."""
        return self.bundles.target

    def learning_rows(self, own: pd.DataFrame, uploaders: pd.Series, catalog: Catalog) -> D:
        """Return what a retraining learns from: the shipped rows, and rows of the store with the API key of each."""
        return self.join_stored(self.predictor_file.load_rows(), own, uploaders, catalog)


_COMMANDS: Final = {INFERENCE: "make predictor", TRAINING: "make job-predictor"}
_LIMITS_COMMANDS: Final = {
    target: f"python -m roofcast.training.lifecycle.shipped {target} limits" for target in _COMMANDS
}

INFERENCE_TARGET: Final[LearnedTarget[TrainingSet, ModelBundle]] = LearnedTarget(
    bundles=ModelBundle,
    predictor_file=ShippedFile("predictor.roofcast", _COMMANDS[INFERENCE], load_campaigns, load_catalog),
    limits_file=ShippedFile("ratio_limits.csv", _LIMITS_COMMANDS[INFERENCE], load_campaigns, load_catalog),
    join_stored=join_stored_rows,
    fit=fit_bundle,
    trial=InferenceTrial,
    predict_sample=predict_queries,
    score=score_held_out,
    parameters=run_parameters,
    load_ratios=load_shipped_ratios,
    figures=run_figures,
    store_errors=lambda predictor, data: write_held_out_errors(predictor, data.y),
    descriptors=lambda data: data.X,
    has_challenger=True,
)
JOB_TARGET: Final[LearnedTarget[RunSet, JobBundle]] = LearnedTarget(
    bundles=JobBundle,
    predictor_file=ShippedFile("jobs.roofcast", _COMMANDS[TRAINING], load_job_campaigns, job_catalog),
    limits_file=ShippedFile("job_ratio_limits.csv", _LIMITS_COMMANDS[TRAINING], load_job_campaigns, job_catalog),
    join_stored=build_run_set,
    fit=fit_job_bundle,
    trial=JobTrial.of,
    predict_sample=predict_runs,
    score=score_groups,
    parameters=fit_parameters,
    load_ratios=load_shipped_run_ratios,
)
LEARNED_TARGETS: Final[dict[Target, LearnedTarget[Any, Any]]] = {
    INFERENCE: INFERENCE_TARGET, TRAINING: JOB_TARGET,
}  # fmt: skip
