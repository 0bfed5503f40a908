from pathlib import Path

import pytest

from roofcast.data.errors import NotReadyError
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service
from roofcast.training.lifecycle.registry.registry import Registry


def test_a_state_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotReadyError, match=r"cannot be created: .*; set ROOFCAST_HOME"):
        _ = build_service(Settings(home=tmp_path / "file" / "home")).store


def test_nothing_is_created_before_first_use(tmp_path: Path) -> None:
    service = build_service(Settings(home=tmp_path / "home"))
    assert not (tmp_path / "home").exists()
    assert service.store is service.store
    assert (tmp_path / "home" / "roofcast.sqlite").is_file()
    service.close()


def test_the_shipped_predictor_of_training_jobs_answers_while_the_registry_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stamp(_: object) -> str:
        raise NotReadyError("no answer")

    monkeypatch.setattr(Registry, "stamp", stamp)
    heard: list[str] = []
    service = build_service(Settings(home=tmp_path, mlflow_tracking_uri="http://mlflow.invalid"), heard.append)
    assert service.job_model.champion.version.startswith("shipped-")
    assert any("until the registry does: no answer" in text for text in heard)
