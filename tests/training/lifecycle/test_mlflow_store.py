from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from mlflow import MlflowClient

from roofcast.training.lifecycle.registry import Registry


def test_a_store_whose_creation_was_killed_is_created_anew(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    draft = registry.home / "mlflow.db.new"
    with sqlite3.connect(draft) as database:
        database.execute("CREATE TABLE trace_info (request_id TEXT)")
    database.close()
    with registry.run("a test") as run_id:
        pass
    assert run_id
    assert not draft.exists()


def test_a_store_has_its_name_once_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry(tmp_path)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "search_experiments", killed)
        with pytest.raises(KeyboardInterrupt):
            registry.run("a test").__enter__()
    assert registry.is_empty
    with registry.run("a test"):
        assert not registry.is_empty
