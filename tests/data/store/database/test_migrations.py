"""The schema of the first release, and homes that were made before it."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from roofcast.data.campaigns import load_campaigns
from roofcast.data.errors import NotReadyError
from roofcast.data.job_campaigns import load_job_campaigns
from roofcast.data.measurements.job_validation import training_row_ids
from roofcast.data.measurements.validation import row_ids
from roofcast.data.store.api_keys import KeyStore
from roofcast.data.store.database.database import Database, alembic_config, revisions
from roofcast.data.store.measurement_store import MeasurementStore
from tests.data.store.stores import a_model

OLD_HOME = Path(__file__).with_name("before_first_release.sql")
"""Dump of a store of the last schema before the release: rows of three callers, one withdrew all of its own."""


@pytest.fixture
def old_file(tmp_path: Path) -> Path:
    file = tmp_path / "roofcast.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(OLD_HOME.read_text(encoding="utf-8"))
    return file


def test_a_home_from_before_the_first_release_opens_with_all_rows(old_file: Path) -> None:
    rows = load_campaigns(["dstack"]).iloc[:4]
    with MeasurementStore(f"sqlite:///{old_file}") as store:
        assert store.database.has_schema()
        store.migrate()
        stored = store.load(provenance=True)
        assert set(row_ids(stored)) == set(row_ids(rows))
        assert sorted(stored["state"]) == ["accepted"] * 3 + ["withdrawn"]
        assert {*training_row_ids(store.training.load())} == {*training_row_ids(load_job_campaigns().iloc[:1])}
        assert store.models.load() == [a_model()]
        assert {(one.state, one.target) for one in store.retrainings.load()} == {
            ("done", "inference"),
            ("queued", "training"),
        }
        assert [key.name for key in KeyStore(store.database).load()] == ["ci"]
        assert len(store.stacks.load("ci", "rack").rows) == 1
        assert store.shadow_counts.load("a" * 64, "b" * 64)[0] == {("all", "", "answered", 0): 7}
        assert store.add(load_campaigns(["dstack"]).iloc[4:6]).n_new == 2
        assert store.provenance.change("restoration", "key:ci", {"key": "ci"}, only_of="ci").n_row
        assert store.retrainings.add("another").state == "queued"


def test_an_older_schema_is_refused_with_its_cure(old_file: Path) -> None:
    with closing(sqlite3.connect(old_file)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0009'")
    with pytest.raises(NotReadyError, match="'0009' from before the first release; import its files again"):
        Database(f"sqlite:///{old_file}").migrate()


def test_the_revisions_are_those_of_the_files() -> None:
    scripts = ScriptDirectory.from_config(alembic_config())
    assert [*revisions()] == [script.revision for script in scripts.walk_revisions()][::-1]
    assert revisions()[-1] == scripts.get_current_head()


def test_a_schema_that_is_up_to_date_needs_no_alembic(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.sqlite'}"
    Database(url).migrate()
    code = f"import sys; from roofcast.data.store.database.database import Database; Database({url!r}).migrate()"
    check = "; sys.exit('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code + check], check=False).returncode == 0  # noqa: S603
