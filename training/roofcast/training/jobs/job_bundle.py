"""The bundle of training jobs: a fitted predictor with the metadata that serving shows, as one file."""

import functools
import hashlib
from dataclasses import dataclass
from typing import Final

import pandas as pd

from roofcast.data.job_campaigns import job_catalog
from roofcast.data.measurements.target import TRAINING
from roofcast.training.jobs.held_out import CarriedDeviation, ClassErrors, LogErrorModel
from roofcast.training.jobs.job_effects import SLOPES, SMOOTH, TERMS, JobEffects, JobPoints, JobSpace, group_keys
from roofcast.training.jobs.job_predictor import COLUMNS, JobPredictor
from roofcast.training.jobs.job_table import build_job_table
from roofcast.training.learner.boosted_trees import ResidualRegressor
from roofcast.training.learner.errors.error_distribution import ErrorScaleModel
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal
from roofcast.training.lifecycle.bundles.bundle import CLASSES as INFERENCE_CLASSES
from roofcast.training.lifecycle.bundles.bundle_file import Classes, stored_fields
from roofcast.training.lifecycle.bundles.bundle_io import Bundle


@dataclass(frozen=True)
class JobBundle(Bundle):
    """A fitted predictor of training jobs and its metadata."""

    target = TRAINING

    predictor: JobPredictor

    @classmethod
    @functools.cache
    def layout(cls) -> str:
        """Return a digest of columns, terms, keys and stored attributes."""
        stored = sorted((kind.__name__, tuple(names)) for kind, names in cls.classes.items())
        keys = [int(key) for key in group_keys(build_job_table(_example(), job_catalog()))[0]]
        parts = repr((column_names(), [*TERMS, *SLOPES, *SMOOTH], keys, stored))
        return hashlib.blake2b(parts.encode(), digest_size=8).hexdigest()

    @staticmethod
    def n_feature(path: str) -> int:
        """Return the number of columns of the regressor's metric."""
        return len(column_names()[path.split(".")[2]])


_DATACLASSES: Final = (
    JobBundle,
    LogErrorModel,
    ClassErrors,
    CarriedDeviation,
    JobSpace,
    JobPoints,
    ErrorScaleModel,
)

CLASSES: Final[Classes] = {
    JobPredictor: ("models_", "owners_", "limits_", "n_run_"),
    JobEffects: ("n_iteration", "sd_", "training_points_", "errors_", "weight_"),
    **{cls: stored_fields(cls) for cls in _DATACLASSES},
    GroupedConformal: ("n_group", "_scores", "_cumulative"),
    ResidualRegressor: INFERENCE_CLASSES[ResidualRegressor],
}
"""Classes of a bundle file, each with its stored attributes."""

JobBundle.classes = CLASSES


@functools.cache
def column_names() -> dict[str, tuple[str, ...]]:
    """Return the names of the learner's columns by metric."""
    table = build_job_table(_example(), job_catalog())
    return {name: tuple(columns(table)) for name, columns in COLUMNS.items()}


def _example() -> pd.DataFrame:
    # fixed: a bundle stores keys of groups, which queries have to reproduce
    cells = {
        "model": "meta-llama/Llama-3.1-8B", "accelerator": "nvidia-h100-sxm-80gb", "framework": "torchtitan",
        "method": "pretrain", "sharding": "fsdp", "recomputation": "none",
    }  # fmt: skip
    numbers = {"n_accelerator": 8.0, "n_token_per_sequence": 4096.0, "n_global_batch_sequence": 8.0}
    return pd.DataFrame([cells | numbers | dict.fromkeys(("tp", "pp", "cp", "ep", "n_micro_batch_sequence"), 1.0)])
