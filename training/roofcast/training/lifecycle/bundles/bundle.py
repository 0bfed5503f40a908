"""The bundle: a fitted predictor with the metadata that serving checks and shows, as one file."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.errors import InputError
from roofcast.data.measurements.target import INFERENCE
from roofcast.features.columns import DESCRIPTORS, FEATURE_NAMES
from roofcast.features.engine.coefficients import Coefficients, OwnerOffsets
from roofcast.features.fingerprint import fingerprint
from roofcast.features.pipeline import METRICS
from roofcast.training.config import TrainingConfig
from roofcast.training.explain.measured_points import MeasuredPoints
from roofcast.training.learner.boosted_trees import NumpyBooster, ResidualRegressor, SupportGate
from roofcast.training.learner.errors.error_distribution import ErrorDistribution, ErrorScaleModel
from roofcast.training.learner.errors.group_keys import STACK_TERMS, TERMS, WORKLOAD_GRID, GroupKeys, build_group_keys
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal
from roofcast.training.learner.errors.lookup_tables import LENGTH_SCALE, LookupTables, key_signatures, keys_by_term
from roofcast.training.learner.errors.random_effects import RandomEffects
from roofcast.training.learner.out_of_memory import OutOfMemoryClassifier
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.lifecycle.bundles.bundle_file import Classes, stored_fields
from roofcast.training.lifecycle.bundles.bundle_io import FILE_NAME, Bundle, checksum_file


@dataclass(frozen=True)
class ModelBundle(Bundle):
    """A fitted predictor of inference and its metadata.

    `anchors`: measurements that it learnt from; explanations list the nearest of them. `feasibility`:
    Out-of-memory classifier: the probability that a deployment runs. None if all did in the measurements.
    """

    target = INFERENCE

    predictor: RoofcastPredictor
    engines: tuple[str, ...]
    accelerators: tuple[str, ...]
    anchors: MeasuredPoints = field(default_factory=MeasuredPoints)
    feasibility: OutOfMemoryClassifier | None = None

    def save(self, path: Path) -> str:
        """Write the bundle with its lookup tables."""
        self.predictor.build_cache(METRICS)
        return super().save(path)

    @classmethod
    def layout(cls) -> str:
        """Return a digest of columns, codes, terms, keys and stored attributes.

        Examples
        --------
        >>> len(ModelBundle.layout())
        16
        """
        named = {kind.__name__: tuple(n for n in names if n not in OPTIONAL) for kind, names in cls.classes.items()}
        stored = sorted(named.items())
        parts = repr((fingerprint(), [*TERMS], [*STACK_TERMS], WORKLOAD_GRID, LENGTH_SCALE, _example_keys(), stored))
        return hashlib.blake2b(parts.encode(), digest_size=8).hexdigest()

    @staticmethod
    def n_feature(path: str) -> int:
        """Return the number of columns of the learner."""
        del path
        return len(FEATURE_NAMES)


_DATACLASSES: Final = (
    Coefficients, ErrorDistribution, ErrorScaleModel, GroupKeys, LookupTables, NumpyBooster, OwnerOffsets,
    SupportGate, TrainingConfig, MeasuredPoints,
)  # fmt: skip

OPTIONAL: Final = ("everyone",)
"""Attributes that a file may lack, for which their class has a default."""

CLASSES: Final[Classes] = {cls: stored_fields(cls) for cls in _DATACLASSES} | {
    GroupedConformal: ("n_group", "_scores", "_cumulative", "everyone"),
    ModelBundle: (
        "predictor", "fingerprint", "data_digest", "row_ids", "engines", "accelerators", "scores", "roofcast_version",
        "anchors", "feasibility",
    ),
    OutOfMemoryClassifier: ("l2", "classes_", "slope_", "intercept_", "n_features_in_"),
    RandomEffects: ("n_iteration", "sd_", "training_points_", "errors_", "_weights", "_tables"),
    ResidualRegressor: (
        "n_member", "n_estimators", "max_depth", "learning_rate", "subsample", "colsample_bytree", "min_child_weight",
        "reg_lambda", "objective", "n_jobs", "random_state", "n_features_in_", "median_", "members_", "_booster",
    ),
    RoofcastPredictor: (
        "config", "metrics", "coefficients", "coefficients_", "owner_offsets_", "metrics_", "regressors_", "gates_",
        "carry_over_", "competent_since_", "feature_range_", "error_distributions_",
    ),
}  # fmt: skip
"""Classes of a bundle file, each with its stored attributes."""

ModelBundle.classes = CLASSES


def _example_keys() -> list[int]:
    names = [column.name for column in sorted(DESCRIPTORS, key=lambda column: column.is_analytic)]
    keys = build_group_keys(pd.DataFrame([np.arange(1.0, len(names) + 1)], columns=names)).keys
    return [int(key) for key in (*keys_by_term(keys)[0], *key_signatures(keys))]


load_bundle = ModelBundle.load


class _BundleModel:
    def __init__(self, bundle: ModelBundle) -> None:
        self._bundle = bundle

    def predict(self, model_input: pd.DataFrame, params: dict[str, Any] | None = None) -> pd.DataFrame:
        del params
        return self._bundle.predictor.predict_distribution(model_input).median


def _load_pyfunc(path: str) -> _BundleModel:
    # MLflow calls this by name; the checksum beside the file guards against damage
    file = Path(path, FILE_NAME)
    beside = checksum_file(file)
    if not beside.is_file():
        raise InputError("bundle", f"no file {beside.name}; retrain to make one")
    return _BundleModel(load_bundle(file, beside.read_text(encoding="ascii", errors="replace")))
