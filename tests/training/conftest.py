from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import pandas as pd
import pytest

from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.lifecycle.registry import Registry
from tests.training.builders import QUICK, a_campaign, a_subset

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # MLflow's own tables use a loader that SQLAlchemy has deprecated


@pytest.fixture(scope="session")
def campaign() -> TrainingSet:
    """Return the shipped measurements."""
    return a_campaign()


@pytest.fixture(scope="session")
def quick(campaign: TrainingSet) -> RoofcastPredictor:
    """Return a predictor of every metric that was quick to fit."""
    return RoofcastPredictor(QUICK).fit(campaign.X, campaign.y, campaign.groups)


@pytest.fixture(scope="session")
def means(campaign: TrainingSet) -> pd.DataFrame:
    """Return some questions for means of closed loops."""
    X = campaign.X[campaign.X["workload.is_mean"] > 0]
    return X[X["workload.concurrency"].notna()].iloc[::20]


@pytest.fixture(scope="session")
def subset() -> TrainingSet:
    """Return medians of three lineages."""
    return a_subset()


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an MLflow store without runs: its tables take seconds to create."""
    home = tmp_path_factory.mktemp("store")
    Registry(home).versions()
    return home / "mlflow.db"


@pytest.fixture
def home(tmp_path: Path, empty_store: Path) -> Path:
    """Return a folder with an MLflow store of its own."""
    shutil.copy(empty_store, tmp_path)
    return tmp_path
