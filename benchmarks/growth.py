"""Growth of the random effects with the configurations: ``python -m benchmarks.growth``; JSON on the last line.

Rows of 1, 3 and 10 times the shipped configurations are made from the shipped ones: copies with another LLM, other
workloads and noise. Each size runs in a process of its own, for its peak memory. `--whole` times a training too.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.training.dataset.targets import row_weights
from roofcast.training.dataset.training_set import TRAINED_ON, build_training_set
from roofcast.training.learner.group_keys import build_group_keys, select_training_points
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.learner.random_effects import RandomEffects

FACTORS: Final = (1, 3, 10)
METRIC: Final = "ttft_s"


def synthetic_rows(factor: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series, pd.Series]:
    """Return descriptors, outcomes, lineages and stacks of `factor` times the shipped rows."""
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


def measure(factor: int, *, whole: bool) -> dict[str, float]:
    """Return figures of one size; seconds are of the processor."""
    X, y, groups, stacks = synthetic_rows(factor)
    rows = np.flatnonzero((y[METRIC] > 0).to_numpy() & (X["workload.quantile"] == 0.5).to_numpy())
    keys, lineage = build_group_keys(X, stacks).take(rows), groups.to_numpy()[rows]
    error = np.random.default_rng(1).normal(0, 0.5, len(rows)) / row_weights(keys.keys[:, 0])
    before, start = peak_mb(), time.process_time()
    points = select_training_points(keys)
    effects = RandomEffects().fit(keys.take(points), error[points])
    effects.predict_sd_left_out(keys.on_target_stack(), lineage, lineage[points])
    fitted = time.process_time()
    started = effects.with_errors(error[points]).build_cache()
    figures = {
        "n_row": float(len(rows)),
        "n_candidate": float(len(select_training_points(keys, len(rows)))),
        "n_training_point": float(len(started.errors_)),
        "fit_s": fitted - start,
        "cache_s": time.process_time() - fitted,
        "peak_mb": peak_mb() - before,
    }
    if whole:
        start = time.process_time()
        RoofcastPredictor().fit(X, y, groups, stacks=stacks)
        figures |= {"training_s": time.process_time() - start, "training_peak_mb": peak_mb()}
    return figures


def peak_mb() -> float:
    """Return the greatest memory that this process has had, in megabytes."""
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    """Print a table of the sizes, and the same as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--whole", action="store_true", help="time whole trainings too")
    parser.add_argument("--factors", type=int, nargs="+", default=list(FACTORS))
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for factor in options.factors:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            figures[f"{factor}x"] = pool.apply(measure, (factor,), {"whole": options.whole})
    print(pd.DataFrame(figures).round(1).to_string())
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
