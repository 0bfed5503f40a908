from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mlflow.artifacts import download_artifacts
from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from research import experiments, nested
from research.experiments import Design, nested_section, run_comparison
from research.nested import BLEND, METHODS, PRESENT, WEIGHTED
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.lifecycle.registry.registry import Registry

pytestmark = pytest.mark.slow

DESIGN = Design(("itl_s",), n_outer_fold=3, n_inner_fold=2, n_trial=1)


@pytest.fixture(scope="module")
def logged(
    subset: TrainingSet, empty_store: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Registry, str, Run, list[Run]]:
    """Return the registry, the comparison's run, and those children it."""
    home = tmp_path_factory.mktemp("home")
    (home / "mlflow.db").write_bytes(empty_store.read_bytes())
    registry = Registry(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nested, "N_TREE", (5, 10))
        patch.setattr(experiments, "fit_coefficients", lambda *_: (DEFAULT_COEFFICIENTS,))
        run_id = run_comparison(subset, registry, DESIGN)
    client = MlflowClient(tracking_uri=registry.tracking_uri)
    parent = client.get_run(run_id)
    children = client.search_runs([parent.info.experiment_id], f"tags.`mlflow.parentRunId` = '{run_id}'")
    return registry, run_id, parent, children


def test_learner_and_outer_fold_have_a_run(logged: tuple[Registry, str, Run, list[Run]], subset: TrainingSet) -> None:
    _, _, parent, children = logged
    assert {(run.data.tags["learner"], run.data.tags["outer_fold"]) for run in children} == {
        (method, str(fold)) for method in METHODS for fold in (1, 2, 3)
    }
    assert {run.data.tags["data_digest"] for run in [parent, *children]} == {subset.digest}
    assert parent.data.params["n_trial"] == "1"
    assert parent.data.metrics["wall_s"] > 0
    sought = next(run for run in children if run.data.tags["learner"] == "xgboost")
    assert "itl_s.max_depth" in sought.data.params
    for run in children:
        assert {f"{part}.itl_s.{name}" for part in ("inner", "outer") for name in ("mape", "median_ape")} <= set(
            run.data.metrics
        )


def test_error_table_reproduces_the_figures(logged: tuple[Registry, str, Run, list[Run]]) -> None:
    registry, run_id, parent, children = logged
    folder = download_artifacts(run_id=run_id, artifact_path="tables", tracking_uri=registry.tracking_uri)
    table = pd.read_csv(Path(folder, "errors.csv"))
    assert not table.duplicated(["id", "metric"]).any()
    for method in METHODS:
        ape = np.abs(np.exp(-table[method]) - 1)
        assert parent.data.metrics[f"{method}.itl_s.mape"] == pytest.approx(ape.mean())
        assert parent.data.metrics[f"{method}.itl_s.median_ape"] == pytest.approx(ape.median())
    for run in children:
        ape = np.abs(
            np.exp(-table.loc[table["fold"] == int(run.data.tags["outer_fold"]), run.data.tags["learner"]]) - 1
        )
        assert run.data.metrics["outer.itl_s.mape"] == pytest.approx(ape.mean())


def test_section_matches_the_runs(logged: tuple[Registry, str, Run, list[Run]]) -> None:
    registry, run_id, parent, children = logged
    text = nested_section(registry, run_id)
    figures = [parent.data.metrics[f"{PRESENT}.itl_s.{name}"] for name in ("mape", "median_ape")]
    assert f"| production trees | {figures[0]:.3f} / {figures[1]:.3f} |" in text
    weights = {
        run.data.tags["outer_fold"]: run.data.params for run in children if run.data.tags["learner"] == WEIGHTED
    }
    weights_text = " ".join(f"{float(weights[fold]['itl_s.weight']):.2f}" for fold in "123")
    assert f"| {WEIGHTED}: weight | {weights_text} |" in text
    assert f"| {BLEND}: weight_ridge |" in text
    assert "3 outer and 2 inner folds, 1 trials" in text
