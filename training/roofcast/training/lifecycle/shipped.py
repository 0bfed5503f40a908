"""Shipped predictors and limits of the quarantine: computed from the shipped campaigns, stored in the package.

``python -m roofcast.training.lifecycle.shipped TARGET`` fits and stores those of a target, and its held-out errors;
``limits`` after it stores the limits alone, in some seconds.
"""

import functools
import logging
import sys

import pandas as pd

from roofcast.data.errors import InputError
from roofcast.data.measurements.target import Target
from roofcast.training.config import TrainingConfig
from roofcast.training.jobs.job_predictor import JobPredictor
from roofcast.training.lifecycle.bundles.bundle_io import checksum_file
from roofcast.training.lifecycle.bundles.bundle_types import B
from roofcast.training.lifecycle.learned_targets import JOB_TARGET, LEARNED_TARGETS, D, LearnedTarget
from roofcast.training.lifecycle.ratio_limits import RatioLimits
from roofcast.training.lifecycle.registry.registry import SHIPPED, Champion, ShippedPredictor
from roofcast.training.lifecycle.shipped_file import Manifest

logger = logging.getLogger(__name__)


def shipped_predictor(target: LearnedTarget[D, B]) -> ShippedPredictor | None:
    """Return the shipped predictor of a target; None if it is missing or its layout is not the code's."""
    shipped = target.predictor_file
    try:
        manifest = shipped.read_manifest()
    except (OSError, ValueError, InputError) as error:
        logger.warning("the shipped predictor cannot be used: %s; run `%s`", error, shipped.command)
        return None
    if manifest.layout != target.bundles.layout() or not shipped.file.is_file():
        logger.warning("the shipped predictor is of another layout than the code; run `%s`", shipped.command)
        return None
    return ShippedPredictor(Champion(f"{SHIPPED}{manifest.sha256[:8]}", "", manifest.sha256), shipped.file)


def load_shipped(target: LearnedTarget[D, B]) -> B:
    """Return the shipped bundle of a target.

    Raises `InputError` if the file is not the one of the manifest, or of another layout than the code.
    """
    shipped = target.predictor_file
    return target.bundles.load(shipped.file, shipped.read_manifest().sha256)


@functools.cache
def load_shipped_job_predictor() -> JobPredictor:
    """Return the predictor that was fitted to the shipped training campaigns: see `load_shipped`; cached."""
    return load_shipped(JOB_TARGET).predictor


@functools.cache
def shipped_limits(target: Target) -> RatioLimits:
    """Return the limits of the quarantine of a target, by its shipped campaigns."""
    return RatioLimits.read(LEARNED_TARGETS[target].limits_file.file)


def shipped_rows(target: LearnedTarget[D, B]) -> D:
    """Return the training set of the shipped campaigns of a target."""
    rows = target.predictor_file.load_rows()
    return target.join_stored(rows, rows.iloc[:0], pd.Series(dtype=object), target.predictor_file.load_catalog())


def store_limits(target: LearnedTarget[D, B]) -> Manifest:
    """Compute the limits of a target and store them in the source tree; return their manifest."""
    RatioLimits.fit(*target.load_ratios()).write(target.limits_file.file)
    return target.limits_file.write_manifest()


def store_predictor(target: LearnedTarget[D, B]) -> Manifest:
    """Fit a predictor to the shipped campaigns and store it in the source tree; return its manifest."""
    data, shipped = shipped_rows(target), target.predictor_file
    bundle = target.fit(data, TrainingConfig(), None)
    shipped.file.parent.mkdir(exist_ok=True)
    bundle.save(shipped.file)
    checksum_file(shipped.file).unlink()
    target.store_errors(bundle.predictor, data)
    return shipped.write_manifest(target.bundles.layout())


if __name__ == "__main__":
    name, *only = sys.argv[1:]
    learned = LEARNED_TARGETS[name]  # type: ignore[index]  # its message names the key
    print(store_limits(learned).model_dump_json())
    if not only:
        print(store_predictor(learned).model_dump_json())
