"""The shipped predictor of training jobs: fitted to the shipped training campaigns, stored in the package.

``python -m roofcast.training.training_jobs.shipped`` fits and stores it, with fingerprints of data and code.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Final

import roofcast.data
import roofcast.features
import roofcast.training
from roofcast.data.errors import InputError
from roofcast.data.specs import Spec
from roofcast.data.training_campaigns import load_training_campaigns, training_catalog
from roofcast.training.learner.boosted_residual import ResidualRegressor
from roofcast.training.learner.error_distribution import ErrorScaleModel, GroupedConformal
from roofcast.training.lifecycle.bundle import CLASSES
from roofcast.training.lifecycle.bundle_file import BundleFile, Classes, stored_fields, write_object
from roofcast.training.lifecycle.shipped import catalog_fingerprint, code_fingerprint, rows_fingerprint
from roofcast.training.training_jobs.group_effects import GroupEffects
from roofcast.training.training_jobs.log_error_model import LogErrorModel
from roofcast.training.training_jobs.predictor import TrainingJobPredictor
from roofcast.training.training_jobs.residual_trees import ResidualTrees

FILE: Final = Path(__file__).parents[1] / "shipped" / "training_jobs.roofcast"
MANIFEST: Final = FILE.with_suffix(".json")
COMMAND: Final = "make training-predictor"

CODE: Final = (
    (roofcast.features, "training"),
    (roofcast.features, "engine/kernels"),
    (roofcast.training, "training_jobs"),
    (roofcast.training, "dataset/training_runs.py"),
    (roofcast.training, "dataset/folds.py"),
    (roofcast.training, "dataset/stacks.py"),
    (roofcast.training, "dataset/targets.py"),
    (roofcast.training, "learner/boosted_residual.py"),
    (roofcast.training, "learner/error_distribution.py"),
    (roofcast.training, "lifecycle/bundle_file.py"),
    (roofcast.data, "measurements/training_schema.py"),
    (roofcast.data, "measurements/training_validation.py"),
)
"""Files and folders of packages whose code changes what is fitted or stored."""

STORED: Final[Classes] = {
    TrainingJobPredictor: ("models_", "owners_", "limits_"),
    **{cls: stored_fields(cls) for cls in (LogErrorModel, ResidualTrees, GroupEffects, ErrorScaleModel)},
    **{cls: CLASSES[cls] for cls in (GroupedConformal, ResidualRegressor)},
}
"""Classes of the file with their stored attributes."""


class Manifest(Spec):
    """Digest of the shipped file, and fingerprints of the data and code of its fit."""

    sha256: str
    data: str
    catalog: str
    code: str


def current_manifest(content: bytes) -> Manifest:
    """Return the manifest of a file that today's data and code would give."""
    return Manifest(
        sha256=hashlib.sha256(content).hexdigest(),
        data=rows_fingerprint(load_training_campaigns()),
        catalog=catalog_fingerprint(training_catalog()),
        code=code_fingerprint(CODE),
    )


def read_manifest() -> Manifest:
    """Return the manifest of the shipped file."""
    return Manifest.parse(json.loads(MANIFEST.read_text(encoding="utf-8")))


@functools.cache
def load_shipped_training_predictor() -> TrainingJobPredictor:
    """Return the predictor that was fitted to the shipped training campaigns; cached.

    Raises
    ------
    InputError
        If the file is not the one of the manifest, or of another layout than the code.
    """
    content = FILE.read_bytes()
    if hashlib.sha256(content).hexdigest() != read_manifest().sha256:
        raise InputError("training_jobs", f"{FILE.name} is not the file of its manifest; run `{COMMAND}`")
    predictor: TrainingJobPredictor = BundleFile.parse(content, FILE.name).decode(STORED)
    return predictor


def build() -> Manifest:
    """Fit the predictor to the shipped training campaigns and store it in the source tree; return its manifest."""
    predictor = TrainingJobPredictor().fit(load_training_campaigns())
    write_object(FILE, predictor, STORED, {})
    manifest = current_manifest(FILE.read_bytes())
    MANIFEST.write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return manifest


if __name__ == "__main__":
    print(build().model_dump_json())
