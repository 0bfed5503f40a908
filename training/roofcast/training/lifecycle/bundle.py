"""The bundle: a fitted predictor with what is needed to trust it, as one file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import pandas as pd

from roofcast.data.errors import InputError
from roofcast.features.fingerprint import fingerprint
from roofcast.training.explain.contributions import TrainingPoints
from roofcast.training.learner.group_keys import GRAIN, OF_STACK, TERMS
from roofcast.training.learner.out_of_memory import OutOfMemoryClassifier
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.learner.random_effect_tables import LENGTH

FILE_NAME = "bundle.joblib"


@dataclass(frozen=True, slots=True)
class ModelBundle:
    """A fitted predictor and its papers.

    Parameters
    ----------
    predictor
        Fitted.
    fingerprint
        `layout` of what it was fitted with.
    data_digest, row_ids
        Of the measurements it was fitted to.
    engines, accelerators
        Engines and accelerators it has seen.
    scores
        Held-out errors by metric.
    roofcast_version
        That made it.
    anchors
        The measurements that its effects rest on, to show.
    feasibility
        Of whether a deployment runs at all; None if nothing failed in the measurements.
    """

    predictor: RoofcastPredictor
    fingerprint: str
    data_digest: str
    row_ids: tuple[str, ...]
    engines: tuple[str, ...]
    accelerators: tuple[str, ...]
    scores: dict[str, dict[str, float]]
    roofcast_version: str = field(default_factory=lambda: version("roofcast"))
    anchors: TrainingPoints = field(default_factory=TrainingPoints)
    feasibility: OutOfMemoryClassifier | None = None

    def save(self, path: Path) -> str:
        """Write the bundle to `path`, and its SHA-256 into `checksum_file` beside it; return the SHA-256."""
        joblib.dump(self, path, compress=3)
        checksum = sha256(path)
        checksum_file(path).write_text(checksum, encoding="ascii")
        return checksum


def layout() -> str:
    """Return a digest of columns, codes and effects; a bundle made with others is refused.

    Examples
    --------
    >>> len(layout())
    16
    """
    parts = repr((fingerprint(), [*TERMS], [*OF_STACK], GRAIN, LENGTH))
    return hashlib.blake2b(parts.encode(), digest_size=8).hexdigest()


def checksum_file(path: Path) -> Path:
    """Return where the SHA-256 of a bundle stands: beside it, under its name with another ending.

    Examples
    --------
    >>> checksum_file(Path("roofcast.joblib")).name
    'roofcast.joblib.sha256'
    """
    return path.with_name(f"{path.name}.sha256")


def sha256(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_bundle(path: Path, expected_sha256: str) -> ModelBundle:
    """Return the bundle in `path`, which is read only if its checksum is the expected one.

    Raises
    ------
    InputError
        If the file is missing, its checksum differs, it cannot be read, it is no bundle, or its parts or columns are
        not this version's.
    """
    if not path.is_file():
        raise InputError("bundle", f"no file {path.name}; retrain to make one")
    if sha256(path) != expected_sha256:
        raise InputError("bundle", f"{path.name} does not have the registered checksum; it was cut or replaced")
    try:
        bundle = joblib.load(path)
    except Exception as error:  # unpickling runs constructors, which may raise anything
        raise InputError(
            "bundle", f"{path.name} cannot be read ({type(error).__name__}: {error}); retrain"
        ) from error
    if not isinstance(bundle, ModelBundle):
        raise InputError("bundle", f"{path.name} holds a {type(bundle).__name__}, not a ModelBundle")
    if not all(hasattr(bundle, part.name) for part in fields(bundle)):
        raise InputError(
            "bundle", f"{path.name} was made by another version of roofcast, whose bundles differ; retrain"
        )
    if bundle.fingerprint != layout():
        raise InputError(
            "bundle",
            f"was made by roofcast {bundle.roofcast_version} of layout {bundle.fingerprint}, this version has "
            f"{layout()}; retrain",
        )
    return bundle


class _BundleModel:
    """What MLflow's pyfunc flavour serves: descriptors in, predictions out."""

    def __init__(self, bundle: ModelBundle) -> None:
        self._bundle = bundle

    def predict(self, model_input: pd.DataFrame, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """Return the predicted metrics of a table of descriptors."""
        del params
        return self._bundle.predictor.predict(model_input)


def _load_pyfunc(path: str) -> _BundleModel:
    """Load the bundle for MLflow, which calls this by name, if it has the checksum that was written beside it.

    That tells of damage. It is no defence against who can write the folder; the registry's own checksum is.
    """
    file = Path(path, FILE_NAME)
    beside = checksum_file(file)
    if not beside.is_file():
        raise InputError("bundle", f"no file {beside.name}; retrain to make one")
    return _BundleModel(load_bundle(file, beside.read_text(encoding="ascii", errors="replace")))
