import os
import shutil
from pathlib import Path

import pytest

from roofcast.data.errors import InputError, NotReadyError
from roofcast.data.measurements.target import INFERENCE
from roofcast.serving import composition
from roofcast.serving.app_state.champion_loader import FILE_NAME, ChampionLoader, ownership_problem
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service
from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.bundles.bundle_cache import BundleCache
from roofcast.training.lifecycle.registry.registry import Champion, Registry, ShippedPredictor


def test_without_a_champion_no_model_is_active(empty_home: Path, tmp_path: Path) -> None:
    service = build_service(Settings(home=Path(shutil.copytree(empty_home, tmp_path / "new"))))
    assert not service.champions[INFERENCE].refresh()
    with pytest.raises(NotReadyError, match="run `roofcast retrain`"):
        _ = service.active_model
    service.store.close()


def test_a_champion_of_another_layout_is_refused_with_its_reason(settings: Settings) -> None:
    other = type("Other", (ModelBundle,), {"layout": staticmethod(lambda: "another")})
    loader = ChampionLoader(Registry(settings.home, kind=other), settings.home)
    with pytest.raises(InputError, match="this version has another; retrain"):
        loader.refresh()
    with pytest.raises(NotReadyError, match="the champion, version 1, cannot be used"):
        _ = loader.active_model


def test_a_registry_with_the_same_stamp_is_not_queried(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build_service(settings)
    assert first.registry.champion()  # the first query in a copied state folder rewrites its places of files
    assert first.champions[INFERENCE].refresh()
    later = build_service(settings)
    assert later.champions[INFERENCE].resume()
    queries: list[int] = []
    monkeypatch.setattr(Registry, "champion", lambda _: queries.append(1))
    assert not first.champions[INFERENCE].refresh()
    assert not later.champions[INFERENCE].refresh()
    assert not queries
    os.utime(settings.home / "mlflow.db")
    assert not later.champions[INFERENCE].refresh()
    assert queries


@pytest.fixture
def shipped(trained_home: Path, monkeypatch: pytest.MonkeyPatch) -> Champion:
    """Put the bundle of `trained_home` in the place of the shipped predictor."""
    (file,) = (trained_home / "bundles").iterdir()
    champion = Champion(f"shipped-{file.stem[:8]}", "", file.stem)
    monkeypatch.setattr(composition, "shipped_predictor", lambda *_: ShippedPredictor(champion, file))
    return champion


def test_the_shipped_predictor_is_active_at_once_and_without_mlflow(shipped: Champion, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    first = build_service(settings)
    assert first.champions[INFERENCE].resume()
    assert not first.champions[INFERENCE].refresh()
    other = build_service(settings)
    assert other.champions[INFERENCE].refresh()
    for service in (first, other, build_service(settings)):
        service.champions[INFERENCE].resume()
        assert service.active_model.champion == shipped
    assert not (settings.home / "mlflow.db").exists()


def test_the_shipped_predictor_replaces_a_champion_that_cannot_be_loaded(
    shipped: Champion, settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InputError("bundle", "version 1 has lost its files")

    (bundle,) = (settings.home / "bundles").iterdir()
    bundle.unlink()
    monkeypatch.setattr(BundleCache, "load", refuse)
    service = build_service(settings)
    with pytest.raises(InputError, match="version 1"):
        service.champions[INFERENCE].refresh()
    assert service.active_model.champion == shipped
    assert f"version {shipped.version} answers" in caplog.text


def test_the_last_champion_resumes_only_if_no_other_user_can_write_its_files(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    assert build_service(settings).champions[INFERENCE].refresh()
    name = settings.home / FILE_NAME
    (bundle,) = (settings.home / "bundles").glob("*.roofcast")
    assert name.stat().st_mode & 0o777 == 0o600
    assert build_service(settings).champions[INFERENCE].resume()
    for file in (name, bundle):
        mode = file.stat().st_mode
        file.chmod(0o620)
        assert not build_service(settings).champions[INFERENCE].resume()
        assert f"{file} must not be writable by others" in caplog.text
        file.chmod(mode)
    assert build_service(settings).champions[INFERENCE].resume()


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x"
    file.touch(0o600)
    assert not ownership_problem(file)
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    assert f"must belong to the user {mine + 1}" in ownership_problem(file)
