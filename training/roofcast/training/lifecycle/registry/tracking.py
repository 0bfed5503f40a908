"""MLflow run of a training: settings, data digest, held-out errors, plots and the bundle."""

import tempfile
from pathlib import Path
from typing import Final

import mlflow
import pandas as pd
from mlflow.models import infer_signature

from roofcast.training.lifecycle.bundles.bundle_io import FILE_NAME, Bundle
from roofcast.training.lifecycle.bundles.bundle_types import B
from roofcast.training.lifecycle.gate.trial import Trial
from roofcast.training.lifecycle.learned_targets import D, LearnedTarget
from roofcast.training.lifecycle.registry.registry import Registry
from roofcast.training.lifecycle.registry.version_description import own_rows

FOLDER: Final = "bundle"


def log_training(target: LearnedTarget[D, B], registry: Registry[B], bundle: B, data: D, trial: Trial) -> str:
    """Log a training run, register its bundle and return the new version."""
    errors = target.score(bundle.predictor, data)
    with registry.run(f"{target.bundles.name('retrain')}-{data.digest[:8]}") as run_id:
        counts = {
            "n_row": len(data.ids),
            "n_own_row": int(own_rows(data.stacks).sum()),
            "n_group": data.groups.nunique(),
        }
        mlflow.log_params(target.parameters(bundle.predictor) | counts)
        mlflow.set_tags(
            {
                "target": target.name,
                "data_digest": data.digest,
                "columns": bundle.fingerprint,
                "roofcast_version": bundle.roofcast_version,
            }
        )
        mlflow.log_metrics({f"{m}.{name}": v for m, scores in bundle.scores.items() for name, v in scores.items()})
        mlflow.log_metrics(error_metrics(errors))
        for name, figure in target.figures(bundle.predictor, data):
            mlflow.log_figure(figure, f"plots/{name}.png")
        with tempfile.TemporaryDirectory() as folder:
            _write_tables(Path(folder), errors, data, trial)
            mlflow.log_artifacts(folder, "tables")
        checksum, uri = log_bundle(bundle, target.descriptors and target.descriptors(data), run_id)
    return registry.register(uri, run_id, checksum)


def error_metrics(errors: pd.DataFrame) -> dict[str, float]:
    """Return the held-out errors by names that MLflow admits.

    Examples
    --------
    >>> table = pd.DataFrame({"held_out": ["lineage"], "group": ["a+b"], "metric": ["tpot_s"], "mape": [0.5]})
    >>> error_metrics(table)
    {'lineage.a_b.tpot_s.mape': 0.5}
    """
    names = errors["held_out"] + "." + errors["group"].astype(str) + "." + errors["metric"] + ".mape"
    names = names.str.replace(r"[^A-Za-z0-9._-]", "_", regex=True)
    return dict(zip(names, errors["mape"].astype(float), strict=True))


def _write_tables(folder: Path, errors: pd.DataFrame, data: D, trial: Trial) -> None:
    predicted = trial.held_out[0].add_prefix("predicted.")
    errors.to_csv(folder / "errors.csv", index=False)
    data.measurements["campaign"].value_counts().to_csv(folder / "campaigns.csv")
    pd.concat([data.ids.rename("id"), data.groups, trial.measured, predicted], axis=1).to_csv(
        folder / "held_out.csv", index=False
    )


def log_bundle(bundle: Bundle, X: pd.DataFrame | None, run_id: str) -> tuple[str, str]:
    """Log the bundle to the open run and return its SHA-256 and address.

    `X`: shape (n_row, n_descriptor): queries by which MLflow serves the bundle; None if it does not.
    """
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, FOLDER)
        folder.mkdir()
        checksum = bundle.save(folder / FILE_NAME)
        if X is None:
            mlflow.log_artifacts(str(folder), FOLDER)
            return checksum, f"runs:/{run_id}/{FOLDER}"
        example = X.head(3)
        info = mlflow.pyfunc.log_model(
            name=FOLDER,
            loader_module=type(bundle).__module__,
            data_path=str(folder),
            signature=infer_signature(X, bundle.predictor.predict(example)),
            input_example=example,
            pip_requirements=[f"roofcast=={bundle.roofcast_version}"],
        )
    return checksum, str(info.model_uri)
