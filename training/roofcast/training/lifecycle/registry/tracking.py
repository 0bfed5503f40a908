"""MLflow run of a training: settings, data digest, held-out errors, plots and the bundle."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
from mlflow.models import infer_signature

from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.targets import log_ratio
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.evaluation.plots import plot_coefficients, plot_coverage, plot_predicted
from roofcast.training.lifecycle.bundles.bundle import FILE_NAME, ModelBundle
from roofcast.training.lifecycle.registry.registry import Registry
from roofcast.training.lifecycle.registry.version_description import own_rows


def log_training(
    registry: Registry,
    bundle: ModelBundle,
    data: TrainingSet,
    config: TrainingConfig,
    *,
    folds: pd.DataFrame,
    stacks: pd.DataFrame,
) -> str:
    """Log a training run, register its bundle and return the new version.

    Parameters
    ----------
    folds, stacks
        Errors with lineages, and with owners of stacks, held out: columns `group`, `metric` and one per score.
    """
    with registry.run(f"retrain-{data.digest[:8]}") as run_id:
        counts = {
            "n_row": len(data.X),
            "n_own_row": int(own_rows(data.stacks).sum()),
            "n_group": data.groups.nunique(),
        }
        mlflow.log_params({**config.model_dump(), **counts})
        mlflow.set_tags(
            {
                "data_digest": data.digest,
                "columns": bundle.fingerprint,
                "roofcast_version": bundle.roofcast_version,
                "engines": ",".join(bundle.engines),
            }
        )
        mlflow.log_metrics({f"{m}.{name}": v for m, scores in bundle.scores.items() for name, v in scores.items()})
        mlflow.log_metrics(_fold_metrics(folds))
        mlflow.log_metrics(_fold_metrics(stacks, "stack"))
        _log_tables(bundle, folds, stacks, data)
        _log_plots(bundle, data)
        checksum, uri = _log_bundle(bundle, data)
    return registry.register(uri, run_id, checksum)


def _fold_metrics(folds: pd.DataFrame, prefix: str = "fold") -> dict[str, float]:
    if folds.empty:
        return {}
    groups = [re.sub(r"[^A-Za-z0-9._-]", "_", str(group)) for group in folds["group"]]
    names = [f"{prefix}.{group}.{metric}.mape" for group, metric in zip(groups, folds["metric"], strict=True)]
    return dict(zip(names, folds["mape"].astype(float), strict=True))


def _log_tables(bundle: ModelBundle, folds: pd.DataFrame, stacks: pd.DataFrame, data: TrainingSet) -> None:
    predicted = bundle.predictor.held_out_.add_prefix("predicted.")
    with tempfile.TemporaryDirectory() as folder:
        folds.to_csv(Path(folder, "folds.csv"), index=False)
        stacks.to_csv(Path(folder, "stacks.csv"), index=False)
        data.measurements["campaign"].value_counts().to_csv(Path(folder, "campaigns.csv"))
        pd.concat([data.ids, data.groups, data.y, predicted], axis=1).to_csv(
            Path(folder, "held_out.csv"), index=False
        )
        mlflow.log_artifacts(folder, "tables")


def _log_plots(bundle: ModelBundle, data: TrainingSet) -> None:
    for metric in bundle.predictor.metrics_:
        measured = data.y[metric].to_numpy(dtype=float)
        figure = plot_predicted(measured, bundle.predictor.held_out_[metric].to_numpy(), data.groups, metric)
        mlflow.log_figure(figure, f"plots/{metric}.png")
    errors = {
        m: np.abs(log_ratio(data.y[m].to_numpy(dtype=float), bundle.predictor.held_out_[m].to_numpy()))
        for m in bundle.predictor.metrics_
    }
    mlflow.log_figure(plot_coverage(errors, data.groups), "plots/coverage.png")
    mlflow.log_figure(plot_coefficients(bundle.predictor.coefficients_), "plots/coefficients.png")


def _log_bundle(bundle: ModelBundle, data: TrainingSet) -> tuple[str, str]:
    example = data.X.head(3)
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "bundle")
        folder.mkdir()
        checksum = bundle.save(folder / FILE_NAME)
        info = mlflow.pyfunc.log_model(
            name="bundle",
            loader_module="roofcast.training.lifecycle.bundles.bundle",
            data_path=str(folder),
            signature=infer_signature(data.X, bundle.predictor.predict(example)),
            input_example=example,
            pip_requirements=[f"roofcast=={bundle.roofcast_version}"],
        )
    return checksum, str(info.model_uri)
