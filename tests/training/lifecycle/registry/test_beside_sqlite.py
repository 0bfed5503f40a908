"""Reading of an SQLite file beside connections of the same process."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

from roofcast.training.lifecycle.registry.registry import Registry


def test_reading_the_stamp_keeps_the_locks_of_a_transaction(tmp_path: Path) -> None:
    file = tmp_path / "mlflow.db"
    connection = sqlite3.connect(file, isolation_level=None)
    connection.executescript("CREATE TABLE t (x); BEGIN IMMEDIATE; INSERT INTO t VALUES (1)")
    write = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0.1).execute('INSERT INTO t VALUES (2)')"
    for _ in range(2):
        assert Registry(tmp_path).stamp()
    other = subprocess.run([sys.executable, "-c", write, str(file)], capture_output=True, text=True, check=False)  # noqa: S603
    assert "database is locked" in other.stderr
    connection.execute("COMMIT")
    assert connection.execute("SELECT x FROM t").fetchall() == [(1,)]
    connection.close()
