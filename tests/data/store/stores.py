"""Models, rows and databases of the store's tests."""

from pathlib import Path

import pandas as pd
import pytest

from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.specs import ModelSpec
from tests.data.row_builders import a_row
from tests.postgres import new_database


def a_model(**changes: object) -> ModelSpec:
    """Return a model of one million weights."""
    fields = {
        "id": "ours/tiny", "lineage": "tiny", "fold_group": "tiny", "n_layer": 2, "hidden_size": 64,
        "intermediate_size": 128, "n_head": 4, "n_kv_head": 4, "head_dim": 16, "vocab_size": 1000,
        "n_param": 10**6, "n_param_active": 10**6, "source": "a test",
    }  # fmt: skip
    return ModelSpec.parse(fields | changes)


def url_of(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Return the URL of a new database: a file, in memory or of PostgreSQL."""
    if backend == "postgresql":
        return new_database(request.getfixturevalue("postgres_server"))
    return "sqlite://" if backend == "memory" else f"sqlite:///{tmp_path / 'state.sqlite'}"


def rows(*loads: int, campaign: str = "nightly") -> pd.DataFrame:
    """Return measurements that differ in their load."""
    return validate_measurements(pd.DataFrame([a_row(concurrency=n, campaign=campaign) for n in loads]))
