from collections.abc import Iterator
from pathlib import Path

import pytest

from roofcast.data.store.measurement_store import MeasurementStore
from tests.data.store.stores import url_of


@pytest.fixture(params=["file", pytest.param("postgresql", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MeasurementStore]:
    """Yield a new store, of SQLite, and in slow tests of PostgreSQL."""
    with MeasurementStore(url_of(request.param, tmp_path, request)) as store:
        yield store.migrate()
