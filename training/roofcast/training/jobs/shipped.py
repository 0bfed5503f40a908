"""The shipped predictor of training jobs: fitted to the shipped training campaigns, stored in the package.

``python -m roofcast.training.jobs.shipped`` fits and stores it, with fingerprints of data and code.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
from pathlib import Path
from typing import Final

import roofcast.data
import roofcast.features
import roofcast.training
from roofcast.data.errors import InputError
from roofcast.data.job_campaigns import job_catalog, load_job_campaigns
from roofcast.data.specs import Spec
from roofcast.training.jobs.lifecycle.bundle import JobBundle, load_job_bundle
from roofcast.training.jobs.lifecycle.fit import fit_job_bundle
from roofcast.training.jobs.lifecycle.run_set import RunSet, build_run_set
from roofcast.training.jobs.predictor import JobPredictor
from roofcast.training.lifecycle.bundles.bundle import checksum_file, sha256
from roofcast.training.lifecycle.registry.registry import SHIPPED, Champion, ShippedPredictor
from roofcast.training.lifecycle.shipped import catalog_fingerprint, code_fingerprint, rows_fingerprint

logger = logging.getLogger(__name__)

FILE: Final = Path(__file__).parents[1] / "shipped" / "jobs.roofcast"
MANIFEST: Final = FILE.with_suffix(".json")
COMMAND: Final = "make job-predictor"

_FIT: Final = (
    "chip_order", "group_effects", "held_out", "job_features", "job_table", "log_error_model", "predictor",
    "lifecycle/bundle", "lifecycle/fit", "lifecycle/run_set",
)  # fmt: skip
"""Modules of this room that fit and store."""

CODE: Final = (
    (roofcast.features, "jobs"),
    (roofcast.features, "engine/kernels"),
    *((roofcast.training, f"jobs/{name}.py") for name in _FIT),
    (roofcast.training, "dataset/job_runs.py"),
    (roofcast.training, "dataset/folds.py"),
    (roofcast.training, "dataset/stacks.py"),
    (roofcast.training, "dataset/targets.py"),
    (roofcast.training, "learner/trees/boosted_residual.py"),
    (roofcast.training, "learner/errors/error_distribution.py"),
    (roofcast.training, "learner/upload_limit.py"),
    (roofcast.training, "lifecycle/bundles/bundle_file.py"),
    (roofcast.data, "measurements/job_schema.py"),
    (roofcast.data, "measurements/job_validation.py"),
)
"""Files and folders of packages whose code changes what is fitted or stored."""


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
        data=rows_fingerprint(load_job_campaigns()),
        catalog=catalog_fingerprint(job_catalog()),
        code=code_fingerprint(CODE),
    )


def read_manifest() -> Manifest:
    """Return the manifest of the shipped file."""
    return Manifest.parse(json.loads(MANIFEST.read_text(encoding="utf-8")))


def shipped_training_predictor() -> ShippedPredictor | None:
    """Return the shipped bundle as the champion where nothing is promoted; None if it is missing."""
    try:
        manifest = read_manifest()
    except (OSError, ValueError, InputError) as error:
        logger.warning("the shipped predictor of training jobs cannot be used: %s; run `%s`", error, COMMAND)
        return None
    if not FILE.is_file():
        logger.warning("the shipped predictor of training jobs is missing; run `%s`", COMMAND)
        return None
    return ShippedPredictor(Champion(f"{SHIPPED}{manifest.sha256[:8]}", "", manifest.sha256), FILE)


@functools.cache
def load_shipped_job_predictor() -> JobPredictor:
    """Return the predictor that was fitted to the shipped training campaigns; cached.

    Raises
    ------
    InputError
        If the file is not the one of the manifest, or of another layout than the code.
    """
    if not FILE.is_file() or sha256(FILE) != read_manifest().sha256:
        raise InputError("jobs", f"{FILE.name} is not the file of its manifest; run `{COMMAND}`")
    return load_job_bundle(FILE, sha256(FILE)).predictor


def load_shipped_job_bundle() -> JobBundle | None:
    """Return the bundle of `shipped_training_predictor`, if there is one."""
    shipped = shipped_training_predictor()
    return load_job_bundle(shipped.file, shipped.champion.sha256) if shipped else None


def shipped_run_set() -> RunSet:
    """Return the runs of the shipped training campaigns."""
    return build_run_set(load_job_campaigns(), None, None, job_catalog())


def build() -> Manifest:
    """Fit the predictor to the shipped training campaigns and store it in the source tree; return its manifest."""
    bundle = fit_job_bundle(shipped_run_set())
    bundle.save(FILE)
    checksum_file(FILE).unlink()
    manifest = current_manifest(FILE.read_bytes())
    MANIFEST.write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return manifest


if __name__ == "__main__":
    print(build().model_dump_json())
