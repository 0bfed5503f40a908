"""Growth of time and memory with the number of configurations, or of rows; prints JSON on the last line.

    python -m benchmarks.growth [--training] [--factors 1 3 10]
    python -m benchmarks.growth --of rows [--factors 1 10 100] [--steps import read build select fit]

Configurations: copies of the shipped rows with another LLM, other workloads and noise, for the random effects and,
with `--training`, a full training. Rows: the shipped rows measured again and again, as a team does each night, for
the import into an SQLite store, its reading, the training set, the training points of random effects, and the fit
that each fold repeats. Each size runs in its own process, to measure its peak memory.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.measurements.schema import OUTCOME_COLUMNS
from roofcast.data.store.measurement_store import MeasurementStore
from roofcast.training.dataset.targets import row_weights
from roofcast.training.dataset.training_set import TRAINED_ON, build_training_set
from roofcast.training.learner.errors.group_keys import build_group_keys, select_training_points
from roofcast.training.learner.errors.random_effects import RandomEffects
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.learner.ratio_model import RatioModel
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET
from roofcast.training.lifecycle.shipped import shipped_rows

FACTORS: Final = (1, 3, 10)
METRIC: Final = "ttft_s"
N_IMPORT: Final = 5_000
"""Rows of one import."""

STEPS: Final = ("import", "read", "build", "select", "fit")


def synthetic_rows(factor: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series, pd.Series]:
    """Return descriptors, outcomes, lineages and stacks with `factor` times the shipped rows."""
    catalog = load_catalog()
    data = build_training_set(load_campaigns(TRAINED_ON), catalog.models, catalog.accelerators)
    rng = np.random.default_rng(0)
    copies = []
    for i in range(factor):
        X, y = data.X.copy(), data.y.copy()
        if i:
            X["model.n_param"] *= 1 + 1e-3 * i
            for name in ("workload.n_input_token", "workload.n_output_token"):
                X[name] = np.maximum(np.rint(X[name] * rng.lognormal(0, 0.2, len(X))), 1.0)
            y *= rng.lognormal(0, 0.1, (len(X), 1))
        copies.append((X, y, data.groups + f" {i}", data.stacks))
    X, y, groups, stacks = (pd.concat(parts, ignore_index=True) for parts in zip(*copies, strict=True))
    return X, y, groups, stacks


def measure(factor: int, *, training: bool) -> dict[str, float]:
    """Return the figures of one size; seconds are CPU time."""
    X, y, groups, stacks = synthetic_rows(factor)
    rows = np.flatnonzero((y[METRIC] > 0).to_numpy() & (X["workload.quantile"] == 0.5).to_numpy())
    keys, lineage = build_group_keys(X, stacks).take(rows), groups.to_numpy()[rows]
    error = np.random.default_rng(1).normal(0, 0.5, len(rows)) / row_weights(keys.keys[:, 0])
    before, start = peak_mb(), time.process_time()
    points = select_training_points(keys)
    effects = RandomEffects().fit(keys.take(points), error[points])
    effects.predict_sd_left_out(keys.on_target_stack(), lineage, lineage[points])
    fitted = time.process_time()
    started = effects.with_points(keys.take(points), error[points]).build_cache()
    figures = {
        "n_row": float(len(rows)),
        "n_candidate": float(len(select_training_points(keys, len(rows)))),
        "n_training_point": float(len(started.errors_)),
        "fit_s": fitted - start,
        "cache_s": time.process_time() - fitted,
        "peak_mb": peak_mb() - before,
    }
    if training:
        start = time.process_time()
        RoofcastPredictor().fit(X, y, groups, stacks=stacks)
        figures |= {"training_s": time.process_time() - start, "training_peak_mb": peak_mb()}
    return figures


def repeated_rows(factor: int) -> pd.DataFrame:
    """Return the shipped measurements `factor` times, each time with other outcomes."""
    shipped, rng = load_campaigns(TRAINED_ON), np.random.default_rng(0)
    copies = [shipped]
    for i in range(1, factor):
        noise = {name: shipped[name] * rng.lognormal(0, 0.1, len(shipped)) for name in OUTCOME_COLUMNS}
        copies.append(shipped.assign(**noise, note=f"night {i}"))
    return pd.concat(copies, ignore_index=True)


def measure_rows(factor: int, *, steps: Collection[str]) -> dict[str, float]:
    """Return the figures of one size of repeated rows; seconds are CPU time."""
    rows, figures = repeated_rows(factor), {}
    figures["n_measurement"] = float(len(rows))

    @contextmanager
    def timed(step: str) -> Iterator[None]:
        start = time.process_time()
        yield
        figures[f"{step}_s"], figures[f"{step}_peak_mb"] = time.process_time() - start, peak_mb()
        print(factor, step, round(figures[f"{step}_s"], 1), round(peak_mb()), flush=True)

    if {"import", "read"} & {*steps}:
        with TemporaryDirectory() as folder, MeasurementStore(f"sqlite:///{folder}/store.sqlite").migrate() as store:
            parts = [rows[i : i + N_IMPORT] for i in range(0, len(rows), N_IMPORT)]
            with timed("import"):
                for part in parts[:-1]:
                    store.add(part)
            with timed("last_import"):
                store.add(parts[-1])
            figures["store_mb"] = Path(folder, "store.sqlite").stat().st_size / 1e6
            if "read" in steps:
                with timed("digest"):
                    store.learnable_digest()
                with timed("read"):
                    store.load_learnable()
    if "build" in steps:
        catalog = load_catalog()
        with timed("build"):
            figures["n_row"] = float(len(build_training_set(rows, catalog.models, catalog.accelerators).X))
    del rows
    if not {"select", "fit"} & {*steps}:
        return figures
    X, y, groups, stacks = repeated_training_rows(factor)
    if "select" in steps:
        with timed("select"):
            figures["n_training_point"] = float(len(select_training_points(build_group_keys(X, stacks))))
    if "fit" in steps:
        with timed("fit"):
            RatioModel(metrics=(METRIC, "tpot_s")).fit(X, y, groups, stacks=stacks)
    return figures


def repeated_training_rows(factor: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series, pd.Series]:
    """Return descriptors, outcomes, lineages and stacks of the training rows of `repeated_rows`."""
    data, rng = shipped_rows(INFERENCE_TARGET), np.random.default_rng(0)
    rows = np.tile(np.arange(len(data.X)), factor)
    X, y = (table.iloc[rows].reset_index(drop=True) for table in (data.X, data.y))
    groups, stacks = (names.iloc[rows].reset_index(drop=True) for names in (data.groups, data.stacks))
    return X, y * rng.lognormal(0, 0.1, (len(y), 1)), groups, stacks


def peak_mb() -> float:
    """Return the peak memory of this process, in megabytes."""
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    """Print a table of the sizes, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--training", action="store_true", help="also measure a full training")
    parser.add_argument("--of", choices=("configurations", "rows"), default="configurations")
    parser.add_argument("--steps", choices=STEPS, nargs="+", default=list(STEPS), help="steps with --of rows")
    parser.add_argument("--factors", type=int, nargs="+", default=list(FACTORS))
    options = parser.parse_args()
    function, choices = (
        (measure_rows, {"steps": options.steps})
        if options.of == "rows"
        else (measure, {"training": options.training})
    )
    figures: dict[str, Any] = {}
    for factor in options.factors:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            figures[f"{factor}x"] = pool.apply(function, (factor,), choices)
    print(pd.DataFrame(figures).round(1).to_string())
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
