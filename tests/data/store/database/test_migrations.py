"""Migrations of a store from each earlier schema."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory

from roofcast.data.campaigns import load_campaigns
from roofcast.data.measurements.schema import MEASUREMENT_COLUMNS
from roofcast.data.measurements.validation import row_ids, validate_measurements
from roofcast.data.store.database.database import Database, _alembic_config, revisions
from roofcast.data.store.measurement_store import Added, MeasurementStore
from roofcast.data.store.provenance import Origin
from tests.data.store.test_measurement_store import a_model, url_of

OLD = [script.revision for script in ScriptDirectory.from_config(_alembic_config()).walk_revisions()][:0:-1]
"""Every revision but the newest, oldest first."""

MOMENT = dt.datetime(2025, 3, 1, 12, tzinfo=dt.UTC)
CONFIG = {"model_type": "unheard_of"}


@pytest.fixture(params=["file", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path, request)


def migrate_to(url: str, revision: str) -> None:
    database, config = Database(url), _alembic_config()
    with database.writing() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    database.close()


def old_rows(columns: set[str]) -> pd.DataFrame:
    """Return the rows of a shipped campaign with the columns of an earlier schema; the others are blank."""
    rows = load_campaigns(["dstack"])
    return validate_measurements(rows[[name for name in MEASUREMENT_COLUMNS if name in columns]])


def fill(url: str) -> pd.DataFrame:
    """Write rows, a model and a retraining into the present tables, and return the rows."""
    database, tables = Database(url), sa.MetaData()
    with database.writing() as connection:
        tables.reflect(connection)
        measurement = tables.tables["measurement"]
        rows = old_rows(set(measurement.columns.keys()))
        cells: list[dict[str, Any]] = rows.astype(object).where(rows.notna(), None).to_dict("records")  # type: ignore[assignment]
        lines = [
            {name: row[name] for name in row if name in measurement.columns} | {"id": id_, "added_at": MOMENT}
            for id_, row in zip(row_ids(rows), cells, strict=True)
        ]
        connection.execute(sa.insert(measurement), lines)
        spec = {"id": "ours/tiny", "spec": a_model().model_dump(mode="json"), "config": CONFIG, "added_at": MOMENT}
        connection.execute(sa.insert(tables.tables["model"]), spec)
        retraining = {"id": "r", "state": "queued", "requested_at": MOMENT, "error": "", "owner": "o"}
        connection.execute(sa.insert(tables.tables["retraining"]), retraining)
    database.close()
    return rows


@pytest.mark.parametrize(
    "revision", [OLD[0], *(pytest.param(one, marks=pytest.mark.slow) for one in OLD[1:-1]), OLD[-1]]
)
def test_a_migration_preserves_all_rows_and_its_downgrade_too(url: str, revision: str) -> None:
    migrate_to(url, revision)
    rows = fill(url)
    with MeasurementStore(url) as store:
        assert store.database.schema_state() == "old"
        assert store.compare(rows) == Added(n_new=0, n_known=len(rows))
        store.migrate()
        assert store.database.schema_state() == "current"
        stored = store.load()
        tables = [table.set_axis(row_ids(table)).sort_index() for table in (stored, rows)]
        pd.testing.assert_frame_equal(tables[0], tables[1])
        assert store.add(rows) == Added(n_new=0, n_known=len(rows))
        assert store.models.load() == [a_model()]
        assert [(r.id, r.state, r.requested_at) for r in store.retrainings.load()] == [("r", "queued", MOMENT)]
        config = _alembic_config()
        with store.database.writing() as connection:
            config.attributes["connection"] = connection
            command.downgrade(config, revision)
        assert store.database.schema_state() == "old"
        assert store.compare(rows).n_known == len(rows)


def test_withdrawals_by_another_than_the_rows_own_key_become_an_operators(url: str) -> None:
    migrate_to(url, "0008")
    rows = fill(url).iloc[:3]
    database, ids = Database(url), row_ids(rows)
    set_key = (
        "UPDATE measurement SET uploader = 'ci', is_operator = false, withdrawn_at = added_at, withdrawn_by = :by"
    )
    with database.writing() as connection:
        for id_, by in zip(ids, ("key:ci", "key:boss", "the command line"), strict=True):
            connection.execute(sa.text(f"{set_key} WHERE id = :id"), {"id": id_, "by": by})
    database.close()
    with MeasurementStore(url) as store:
        change = store.migrate().provenance.change
        assert change("restoration", "key:ci", {"key": "ci"}, only_of="ci").n_row == 1
        assert set(row_ids(store.load())) & set(ids) == {ids[0]}


def test_a_downgrade_drops_what_must_not_teach(url: str) -> None:
    rows = load_campaigns(["dstack"]).iloc[:4]
    reasons = pd.Series(["far off", "far off", "", ""])
    with MeasurementStore(url) as store:
        store.migrate()
        store.add(rows.iloc[:1], origin=Origin("ci", is_operator=False), quarantine=reasons[:1])
        store.add(rows.iloc[1:3], origin=Origin("lab", is_operator=False), quarantine=reasons[1:3])
        store.add(rows.iloc[3:], origin=Origin("boss"))
        store.provenance.change("confirmation", "key:lab", {"key": "lab"})
        store.provenance.change("withdrawal", "key:boss", {"key": "boss"})
        config = _alembic_config()
        with store.database.writing() as connection:
            config.attributes["connection"] = connection
            command.downgrade(config, "0005")
            left = set(connection.execute(sa.text("SELECT id FROM measurement")).scalars())
    assert left == set(row_ids(rows.iloc[1:3]))


def test_the_revisions_are_those_of_the_files() -> None:
    scripts = ScriptDirectory.from_config(_alembic_config())
    assert [*revisions()] == [script.revision for script in scripts.walk_revisions()][::-1]
    assert revisions()[-1] == scripts.get_current_head()


def test_a_schema_that_is_up_to_date_needs_no_alembic(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.sqlite'}"
    Database(url).migrate()
    code = f"import sys; from roofcast.data.store.database.database import Database; Database({url!r}).migrate()"
    check = "; sys.exit('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code + check], check=False).returncode == 0  # noqa: S603
