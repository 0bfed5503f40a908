from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roofcast.data.store.database.tables import MODEL
from roofcast.data.store.measurement_store import MeasurementStore
from tests.data.store.stores import a_model, url_of


@pytest.mark.parametrize("kind", ["memory", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_a_model_that_is_removed_while_it_is_registered_again_is_registered(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with MeasurementStore(url_of(kind, tmp_path, request)) as store:
        store.migrate()
        spec = a_model()
        removals: list[Any] = []
        store.models.add(spec, {})

        def remove_once(connection: sa.Connection, statement: Any, *_: Any) -> None:
            if getattr(statement, "is_insert", False) and not removals:
                removals.append(connection.execute(sa.delete(MODEL)))

        with store.database.writing() as connection:
            sa.event.listen(connection, "after_execute", remove_once)
            store.models.insert(connection, spec, {})
        assert removals
        assert [one.id for one in store.models.load()] == [spec.id]
