"""Nested comparison of learners, logged as MLflow runs: ``python -m research.experiments``.

The comparison is a parent run with one child run per learner and outer fold. The section of ``docs/EXPERIMENTS.md``
is generated from the runs.
"""

import argparse
import logging
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import mlflow
import numpy as np
import optuna
import pandas as pd
from mlflow.entities import Run
from mlflow.tracking import MlflowClient
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from codegen.docs_tables import with_tables
from judge.markdown import markdown_table
from research.nested import (
    BLEND,
    LEARNERS,
    METHODS,
    NONE,
    PRESENT,
    WEIGHTED,
    IndexArray,
    Outcome,
    build_splits,
    compare,
)
from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.home import roofcast_home
from roofcast.data.units import s_from_ms
from roofcast.features.engine.coefficients import Coefficients
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.training_set import TRAINED_ON, TrainingSet, build_training_set
from roofcast.training.learner.calibration import fit_coefficients
from roofcast.training.lifecycle.registry.mlflow_store import URI_VARIABLE
from roofcast.training.lifecycle.registry.registry import Registry

METRICS: Final = ("ttft_s", "tpot_s", "output_throughput_token_per_s")

RUN_NAME: Final = "nested-comparison"
DOCUMENT: Final = Path("docs/EXPERIMENTS.md")
MARKER: Final = "nested"

COMMIT_TAG: Final = "mlflow.source.git.commit"
"""Tag that MLflow sets if the code runs from a clone."""

_MEANING: Final = {
    NONE: "calibrated estimate only",
    PRESENT: "production trees",
    "xgboost": "production trees, tuned settings",
    "lightgbm": "LightGBM, absolute loss",
    "hist": "scikit-learn's histogram boosting, absolute loss",
    "ridge": "ridge regression",
    WEIGHTED: "production trees, weighted",
    BLEND: "weighted blend of all",
}


@dataclass(frozen=True, slots=True)
class Design:
    """Design of the comparison.

    - `metrics`: Metrics to compare, one by one.
    - `n_outer_fold`, `n_inner_fold`: Number of folds; a lineage is never split.
    - `n_trial`: Trials per learner, outer fold and metric.
    """

    metrics: tuple[str, ...] = METRICS
    n_outer_fold: int = 4
    n_inner_fold: int = 3
    n_trial: int = 12


def run_comparison(data: TrainingSet, registry: Registry, design: Design) -> str:
    """Compare the learners, log the results to MLflow, and return the id of the parent run.

    - `data`: Rows without rejected ones.
    - `registry`: Registry whose MLflow store receives the runs.
    """
    start, outcomes = time.monotonic(), []
    with registry.run(RUN_NAME) as run_id:
        mlflow.set_tag("data_digest", data.digest)
        params = asdict(design) | {"metrics": ",".join(design.metrics)}
        mlflow.log_params(params | {"n_row": len(data.X), "n_group": data.groups.nunique()})
        for i, (train, test) in enumerate(leave_one_group_out(data.groups, design.n_outer_fold), start=1):
            outcomes.append(_compare_fold(data, train, test, design))
            _log_fold(data, i, outcomes[-1])
        table = error_table(outcomes, data)
        mlflow.log_metrics(_pooled(table))
        mlflow.log_metric("wall_s", time.monotonic() - start)
        with tempfile.TemporaryDirectory() as folder:
            table.to_csv(Path(folder, "errors.csv"), index=False)
            mlflow.log_artifacts(folder, "tables")
    return run_id


def _compare_fold(
    data: TrainingSet, train: IndexArray, test: IndexArray, design: Design
) -> dict[str, dict[str, Outcome]]:
    outer = build_splits(data, train, test, _fit_coefficients(data, train), design.metrics)
    inner = []
    for inner_train, inner_test in leave_one_group_out(data.groups.iloc[train], design.n_inner_fold):
        coefficients = _fit_coefficients(data, train[inner_train])
        inner.append(build_splits(data, train[inner_train], train[inner_test], coefficients, design.metrics))
    with threadpool_limits(1):
        return {m: compare(outer[m], [split[m] for split in inner], design.n_trial) for m in design.metrics}


def _fit_coefficients(data: TrainingSet, rows: IndexArray) -> Coefficients:
    return fit_coefficients(data.X.iloc[rows], data.y.iloc[rows], data.groups.iloc[rows])[0]


def _log_fold(data: TrainingSet, fold: int, outcomes: Mapping[str, Mapping[str, Outcome]]) -> None:
    parent = mlflow.active_run()
    for method in METHODS:
        with mlflow.start_run(
            experiment_id=parent.info.experiment_id if parent else None, run_name=f"{method}-{fold}", nested=True
        ):
            mlflow.set_tags({"data_digest": data.digest, "learner": method, "outer_fold": str(fold)})
            for metric, of_metric in outcomes.items():
                outcome = of_metric[method]
                mlflow.log_params({f"{metric}.{name}": value for name, value in outcome.settings.items()})
                for part, error in (("inner", outcome.inner), ("outer", outcome.outer)):
                    mlflow.log_metrics({f"{part}.{metric}.{k}": v for k, v in _figures(error).items()})


def error_table(outcomes: Sequence[Mapping[str, Mapping[str, Outcome]]], data: TrainingSet) -> pd.DataFrame:
    """Return the errors of all outer folds, one line per row and metric.

    Returns
    -------
    Columns `fold`, `id`, `group`, `metric`, and one per learner: log(measurement / prediction)
    """
    parts = []
    for fold, of_fold in enumerate(outcomes, start=1):
        for metric, of_metric in of_fold.items():
            row = of_metric[NONE].row
            keys = {"fold": fold, "id": data.ids.iloc[row], "group": data.groups.iloc[row], "metric": metric}
            parts.append(pd.DataFrame(keys | {name: outcome.outer for name, outcome in of_metric.items()}))
    return pd.concat(parts, ignore_index=True)


def _pooled(table: pd.DataFrame) -> dict[str, float]:
    return {
        f"{method}.{metric}.{name}": value
        for metric, lines in table.groupby("metric")
        for method in METHODS
        for name, value in _figures(lines[method].to_numpy()).items()
    }


def _figures(error: np.ndarray) -> dict[str, float]:
    ape = np.abs(np.exp(-error) - 1.0)
    return {"mape": float(ape.mean()), "median_ape": float(np.median(ape)), "log_error": float(np.abs(error).mean())}


def nested_section(registry: Registry, run_id: str) -> str:
    """Return the Markdown section of a comparison from its runs."""
    client = MlflowClient(tracking_uri=registry.tracking_uri)
    parent = client.get_run(run_id)
    children = client.search_runs(
        [parent.info.experiment_id], f"tags.`mlflow.parentRunId` = '{run_id}'", max_results=1000
    )
    return "\n".join(_lines(parent, sorted(children, key=lambda run: int(run.data.tags["outer_fold"]))))


def _lines(parent: Run, children: Sequence[Run]) -> Iterator[str]:
    params, tags = parent.data.params, parent.data.tags
    day = datetime.fromtimestamp(s_from_ms(parent.info.start_time), UTC).date()
    metrics = params["metrics"].split(",")
    yield (
        f"{day}, commit {tags.get(COMMIT_TAG, 'unknown')[:7]}, data {tags['data_digest'][:8]}: "
        f"{int(params['n_row']):,} rows of {params['n_group']} fold groups,\n{params['n_outer_fold']} outer and "
        f"{params['n_inner_fold']} inner folds, {params['n_trial']} trials per learner, fold and metric, "
        f"{parent.data.metrics['wall_s']:.0f} s. Mean / median absolute percentage error of\nmeans and "
        "medians over all outer folds; in brackets, the folds with a lower mean than the production trees.\n"
    )
    rows = [
        [_MEANING[method], *(_cell(parent, children, method, metric) for metric in metrics)] for method in METHODS
    ]
    yield markdown_table(["learner", *(f"`{metric}`" for metric in metrics)], rows)
    yield "\nWeights selected in the inner folds, by outer fold:\n"
    names = [(WEIGHTED, "weight"), *((BLEND, f"weight_{name}") for name in METHODS if name in LEARNERS)]
    rows = [
        [f"{method}: {name}", *(_weights(children, method, f"{m}.{name}") for m in metrics)] for method, name in names
    ]
    yield markdown_table(["weight", *(f"`{metric}`" for metric in metrics)], rows)


def _cell(parent: Run, children: Sequence[Run], method: str, metric: str) -> str:
    mape, median = (parent.data.metrics[f"{method}.{metric}.{name}"] for name in ("mape", "median_ape"))
    mine, present = (
        [run.data.metrics[f"outer.{metric}.mape"] for run in children if run.data.tags["learner"] == name]
        for name in (method, PRESENT)
    )
    better = sum(a < b for a, b in zip(mine, present, strict=True))
    return f"{mape:.3f} / {median:.3f}" + ("" if method == PRESENT else f" ({better} of {len(mine)})")


def _weights(children: Sequence[Run], method: str, parameter: str) -> str:
    weights = [float(run.data.params[parameter]) for run in children if run.data.tags["learner"] == method]
    return " ".join(f"{weight:.2f}" for weight in weights)


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare the learners on the shipped campaigns and update the section."""
    parser = argparse.ArgumentParser(prog="python -m research.experiments", description=main.__doc__)
    parser.add_argument("--trials", type=int, default=Design().n_trial, help="trials per learner, fold and metric")
    parser.add_argument("--run", help="update the section from this MLflow run without computing")
    parser.add_argument("--document", type=Path, default=DOCUMENT, help="document with the section")
    options = parser.parse_args(arguments)
    for name in ("mlflow", "optuna"):
        logging.getLogger(name).setLevel(logging.WARNING)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    registry = Registry(roofcast_home(), os.environ.get(URI_VARIABLE) or None)
    run_id = options.run
    if run_id is None:
        catalog = load_catalog()
        data = build_training_set(load_campaigns(TRAINED_ON), catalog.models, catalog.accelerators)
        run_id = run_comparison(data, registry, Design(n_trial=options.trials))
    text = options.document.read_text(encoding="utf-8")
    section = nested_section(registry, run_id)
    options.document.write_text(with_tables(text, {MARKER: lambda: section}), encoding="utf-8")


if __name__ == "__main__":
    main()
