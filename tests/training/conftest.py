import shutil
import warnings
from pathlib import Path

import pandas as pd
import pytest

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.out_of_memory import Attempts, build_attempts
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.lifecycle.registry.registry import Registry
from tests.build_once import build_folder_once, fit_once
from tests.training.builders import QUICK, a_campaign, a_subset

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # MLflow's own tables use a loader that SQLAlchemy has deprecated


@pytest.fixture(scope="session")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> TrainingSet:
    """Return the shipped measurements."""
    return fit_once(tmp_path_factory, "campaign", a_campaign)


@pytest.fixture(scope="session")
def quick(campaign: TrainingSet, tmp_path_factory: pytest.TempPathFactory) -> RoofcastPredictor:
    """Return a predictor of every metric that was quick to fit."""
    return fit_once(
        tmp_path_factory, "quick", lambda: RoofcastPredictor(QUICK).fit(campaign.X, campaign.y, campaign.groups)
    )


@pytest.fixture(scope="session")
def means(campaign: TrainingSet) -> pd.DataFrame:
    """Return some questions for means of closed loops."""
    X = campaign.X[campaign.X["workload.is_mean"] > 0]
    return X[X["workload.concurrency"].notna()].iloc[::20]


@pytest.fixture(scope="session")
def subset(tmp_path_factory: pytest.TempPathFactory) -> TrainingSet:
    """Return medians of three lineages."""
    return fit_once(tmp_path_factory, "subset", a_subset)


@pytest.fixture(scope="session")
def attempts(campaign: TrainingSet) -> Attempts:
    """Return runs that fitted or not: the campaign's, and static batches of another with their failures."""
    batches, catalog = load_campaigns(["fastertransformer"]), load_catalog()
    rows = pd.concat([campaign.measurements, batches[batches["status"] == "ok"]], ignore_index=True)
    return build_attempts(rows, batches[batches["status"] != "ok"], catalog.models, catalog.accelerators)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an MLflow store without runs: its tables take seconds to create."""

    def build(home: Path) -> None:
        _ = Registry(home)._client

    return build_folder_once(tmp_path_factory, "mlflow-store", build) / "mlflow.db"


@pytest.fixture
def home(tmp_path: Path, empty_store: Path) -> Path:
    """Return a folder with an MLflow store of its own."""
    shutil.copy(empty_store, tmp_path)
    return tmp_path
