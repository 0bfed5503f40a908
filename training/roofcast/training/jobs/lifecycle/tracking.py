"""MLflow run of a fit of the predictor of training jobs: settings, data digest, held-out errors, bundle."""

from __future__ import annotations

import tempfile
from pathlib import Path

import mlflow

from roofcast.training.jobs import group_effects, held_out
from roofcast.training.jobs.lifecycle.bundle import JobBundle
from roofcast.training.jobs.lifecycle.fit import score_groups
from roofcast.training.jobs.lifecycle.run_set import RunSet
from roofcast.training.lifecycle.bundles.bundle import FILE_NAME
from roofcast.training.lifecycle.registry.registry import Registry
from roofcast.training.lifecycle.registry.version_description import own_rows

FOLDER = "bundle"


def log_jobs(registry: Registry[JobBundle], bundle: JobBundle, data: RunSet) -> str:
    """Log a training run, register its bundle and return the new version."""
    errors = score_groups(data, bundle.predictor)
    with registry.run(f"retrain-training-{data.digest[:8]}") as run_id:
        mlflow.log_params(
            {
                "n_fold": held_out.N_FOLD,
                "max_point": group_effects.MAX_POINT,
                "n_row": len(data.ids),
                "n_own_row": int(own_rows(data.rows.owners).sum()),
                "n_group": data.rows.groups.nunique(),
                **{f"{name}.carry_over": model.carry_over for name, model in bundle.predictor.models_.items()},
            }
        )
        mlflow.set_tags(
            {
                "target": "training",
                "data_digest": data.digest,
                "columns": bundle.fingerprint,
                "roofcast_version": bundle.roofcast_version,
            }
        )
        mlflow.log_metrics({f"{m}.{name}": v for m, scores in bundle.scores.items() for name, v in scores.items()})
        names = errors["held_out"] + "." + errors["group"] + "." + errors["metric"] + ".mape"
        names = names.str.replace(r"[^A-Za-z0-9._-]", "_", regex=True)
        mlflow.log_metrics(dict(zip(names, errors["mape"].astype(float), strict=True)))
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent, FOLDER)
            folder.mkdir()
            checksum = bundle.save(folder / FILE_NAME)
            mlflow.log_artifacts(str(folder), FOLDER)
            errors.to_csv(Path(parent, "errors.csv"), index=False)
            mlflow.log_artifact(str(Path(parent, "errors.csv")), "tables")
    return registry.register(f"runs:/{run_id}/{FOLDER}", run_id, checksum)
