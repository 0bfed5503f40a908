"""Training sets and quick settings, for the tests of training."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.job_campaigns import load_job_campaigns
from roofcast.data.measurements.target import INFERENCE, TRAINING
from roofcast.data.measurements.validation import validate_measurements
from roofcast.features.descriptors.config_hash import joint_hash
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.pipeline import METRICS, build_features
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.training_set import TrainingSet, build_training_set
from roofcast.training.learner.errors.group_keys import TARGET_STACK, TERMS, GroupKeys
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET, LearnedTarget
from tests.data.row_builders import a_row

QUICK = TrainingConfig(n_estimators=20, n_fold=3, calibrate=False)
QUIET = replace(INFERENCE_TARGET, figures=lambda *_: iter(()))
"""Inference without plots, which take longer than a quick training."""


def learning_from(target: LearnedTarget[Any, Any], campaigns: Sequence[str]) -> LearnedTarget[Any, Any]:
    """Return a target whose shipped rows are those of some campaigns."""
    load = {INFERENCE: load_campaigns, TRAINING: load_job_campaigns}[target.name]
    return replace(target, predictor_file=replace(target.predictor_file, load_rows=lambda: load(campaigns)))


LINEAGES = ("codegen2-16b", "starcoder-15b", "llama-13b")


def a_campaign() -> TrainingSet:
    """Return the shipped measurements."""
    catalog = load_catalog()
    return build_training_set(load_campaigns(["llm_pilot"]), catalog.models, catalog.accelerators)


def a_subset() -> TrainingSet:
    """Return medians of three lineages."""
    data = a_campaign()
    return data.take((data.groups.isin(LINEAGES) & (data.measurements["statistic"] == "p50")).to_numpy())


def measurements(*rows: dict[str, Any]) -> pd.DataFrame:
    """Return validated measurements."""
    return validate_measurements(pd.DataFrame([a_row(**row) for row in rows]))


def synthetic(data: TrainingSet, coefficients: Any = DEFAULT_COEFFICIENTS, noise: float = 0.0) -> TrainingSet:
    """Return the training set with every metric what the estimate says, times log-normal noise."""
    _, estimates, _ = build_features(data.X, coefficients)
    pick = np.random.default_rng(0)
    y = {m: estimates[m] * np.exp(noise * pick.standard_normal(len(data.X))) for m in METRICS}
    return replace(data, y=pd.DataFrame(y, index=data.X.index))


def repeated(data: TrainingSet, *stacks: str) -> TrainingSet:
    """Return the rows once for each of these stacks."""
    at = np.tile(np.arange(len(data.X)), len(stacks))
    rows = replace(data, stacks=pd.Series(np.repeat(stacks, len(data.X)), dtype=object))
    tables = {name: getattr(data, name).iloc[at] for name in ("measurements", "X", "y", "groups", "ids")}
    return replace(rows, **{name: table.reset_index(drop=True) for name, table in tables.items()})


def a_bundle(data: TrainingSet, **changes: Any) -> ModelBundle:
    """Return a bundle fitted in a moment."""
    predictor = RoofcastPredictor(QUICK, ("tpot_s",)).fit(data.X, data.y, data.groups)
    fields: dict[str, Any] = {
        "predictor": predictor, "fingerprint": ModelBundle.layout(), "data_digest": data.digest,
        "row_ids": tuple(data.ids), "engines": (), "accelerators": (), "scores": {"tpot_s": {"mape": 0.1}},
    }  # fmt: skip
    return ModelBundle(**(fields | changes))


def random_places(n_question: int, *, seed: int = 0, n_model: int = 5, n_other: int = 2, first: int = 1) -> GroupKeys:
    """Return where questions stand whose models, engines and so on are drawn by chance, with keys from `first` on."""
    rng = np.random.default_rng(seed)
    names = ("accelerator", "engine", "precision", "load", "split")
    keys = {name: rng.integers(first, first + n_other, n_question).astype(np.uint64) for name in names}
    keys["model"] = rng.integers(first, first + n_model, n_question).astype(np.uint64)
    keys["kind"] = keys["model"] % 2 + first
    workload = rng.uniform(0, 6, (n_question, 3))
    return places_of(keys, workload, rng.choice(np.array([TARGET_STACK, 5, 6], dtype=np.uint64), n_question))


def places_of(keys: dict[str, Any], workload: Any, stack: Any = None) -> GroupKeys:
    """Return where questions of these config_hashes stand."""
    unsigned = {name: np.asarray(key, dtype=np.uint64) for name, key in keys.items()}
    of_term = np.stack([joint_hash(unsigned, term) for term in TERMS], axis=1)
    whose = np.full(len(of_term), TARGET_STACK) if stack is None else stack
    return GroupKeys(of_term, np.asarray(workload, dtype=float), np.asarray(whose, dtype=np.uint64))
