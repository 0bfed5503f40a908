"""Speed and memory of the components and over HTTP; prints a table, then JSON on the last line.

    python -m benchmarks.bench [--peer peer/bin/python]

Figures of the components are medians of several runs in one process; `benchmarks.over_http` then measures real
servers with the same predictor.
"""

import argparse
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from starlette.testclient import TestClient

from benchmarks.load import DEMAND
from benchmarks.over_http import compare_with_peer, report
from benchmarks.over_http import measure as measure_over_http
from benchmarks.tree_calls import record_tree_calls
from roofcast.data.catalog import load_catalog
from roofcast.data.measurements.target import INFERENCE
from roofcast.data.units import ms_from_s
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import estimate
from roofcast.features.pipeline import build_features
from roofcast.features.queries import descriptor_arrays
from roofcast.serving.app_state.retraining_run import learning_rows
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service
from roofcast.serving.http.app import create_app
from roofcast.serving.logs import configure_service_logs
from roofcast.serving.predict.row_answers import ANSWER_METRICS, PredictOptions, answer_columns
from roofcast.serving.predict.row_checks import table_columns
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET

N_BULK_ROW = 20_000
N_ESTIMATE_ROW = 10_000
N_INTERVAL_ROW = 8_000
N_FEATURE_ROW = 100_000


def median_s(job: Callable[[], Any], n_run: int) -> float:
    """Return the median wall time of `n_run` runs, after one warm-up run."""
    return medians_s([job], n_run)[0]


def medians_s(jobs: Sequence[Callable[[], Any]], n_run: int) -> list[float]:
    """Return the median wall time of each job; the jobs run in turn `n_run` times, after one warm-up turn."""
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(n_run + 1):
        for job, durations in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            durations.append(time.perf_counter() - start)
    return [statistics.median(durations[1:]) for durations in times]


def bulk_queries(n_row: int) -> pd.DataFrame:
    """Return random queries over many models, accelerators and loads."""
    catalog = load_catalog()
    pick = np.random.default_rng(0)
    small = [spec.id for spec in catalog.models.values() if spec.n_param < 3e10]
    return pd.DataFrame(
        {
            "model": pick.choice(small, n_row),
            "accelerator": pick.choice(list(catalog.accelerators), n_row),
            "n_accelerator": pick.choice([1, 2, 4], n_row),
            "n_input_token": pick.integers(16, 2000, n_row),
            "n_output_token": pick.integers(8, 500, n_row),
            "concurrency": pick.choice([1, 8, 64], n_row),
            "statistic": pick.choice(["mean", "p50", "p95"], n_row),
        }
    )


def measure(home: Path) -> dict[str, float]:
    """Return the figures; names end in units."""
    settings = Settings(home=home)
    service = build_service(settings)
    start = time.perf_counter()
    service.retrain()
    figures = {"training_s": time.perf_counter() - start}
    service.champions[INFERENCE].refresh()
    bundle, catalog = service.active_model.bundle, service.catalog
    queries = bulk_queries(N_BULK_ROW)
    columns = table_columns(queries)
    options = PredictOptions(bundle, catalog)
    figures["answer_row_per_s"] = N_BULK_ROW / median_s(lambda: answer_columns(columns, options), 3)
    measured = learning_rows(INFERENCE_TARGET, service.store, catalog).X
    measured = measured[measured["workload.request_rate_per_s"].isna()].reset_index(drop=True)
    subset = measured.sample(N_INTERVAL_ROW, random_state=0)
    predict = bundle.predictor.predict_distribution
    interval_s = median_s(lambda: predict(subset, metrics=ANSWER_METRICS).interval(0.8), 5)
    figures["interval_row_per_s"] = N_INTERVAL_ROW / interval_s
    descriptors = measured.iloc[np.arange(N_FEATURE_ROW) % len(measured)]
    features = median_s(lambda: build_features(descriptors, DEFAULT_COEFFICIENTS), 3)
    figures["feature_row_per_s"] = len(descriptors) / features
    d = {name: values[:N_ESTIMATE_ROW] for name, values in descriptor_arrays(descriptors).items()}
    figures["estimate_row_per_s"] = N_ESTIMATE_ROW / median_s(lambda: estimate(d, DEFAULT_COEFFICIENTS), 15)
    row = {"rows": [queries.iloc[0].to_dict()]}
    row["rows"][0] = {name: getattr(value, "item", lambda v=value: v)() for name, value in row["rows"][0].items()}
    with TestClient(create_app(settings)) as client:
        replay = record_tree_calls(lambda: client.post("/v1/recommendations", json=DEMAND))
        recommendation_s, trees_s = medians_s([lambda: client.post("/v1/recommendations", json=DEMAND), replay], 15)
        figures["recommendation_ms"] = ms_from_s(recommendation_s)
        figures["recommendation_over_trees"] = recommendation_s / trees_s
        figures["prediction_ms"] = 1e3 * median_s(lambda: client.post("/v1/predictions", json=row), 50)
    service.store.close()
    unit = 1e6 if sys.platform == "darwin" else 1e3
    figures["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    figures["bundle_mb"] = sum(f.stat().st_size for f in (home / "bundles").iterdir()) / 1e6
    return figures


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, help="Python executable of an environment with aiconfigurator")
    options = parser.parse_args()
    configure_service_logs("text", "warning")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        figures = measure(home) | measure_over_http(home, Path(folder))
    report(figures | (compare_with_peer(figures, options.peer) if options.peer else {}))


if __name__ == "__main__":
    main()
