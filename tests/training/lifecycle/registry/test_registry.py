import logging
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities.model_registry import ModelVersion

from roofcast.data.errors import InputError, NoAnswerError, NotReadyError, UnknownNameError
from roofcast.training.lifecycle.bundles.bundle import CLASSES, ModelBundle
from roofcast.training.lifecycle.bundles.bundle_file import write_object
from roofcast.training.lifecycle.bundles.bundle_io import FILE_NAME, sha256
from roofcast.training.lifecycle.bundles.ubjson import parse_ubjson
from roofcast.training.lifecycle.registry import registry as registry_module
from roofcast.training.lifecycle.registry.mlflow_store import URI_VARIABLE
from roofcast.training.lifecycle.registry.registry import Champion, Registry, ShippedPredictor
from tests.conditions import PATIENCE_S
from tests.training.lifecycle.bundles.ubjson_writer import write_ubjson
from tests.training.lifecycle.registry.versions import add_version, version_of


@pytest.fixture
def three_versions(registry: Registry, bundle: ModelBundle, tmp_path: Path) -> Registry:
    """Return a registry of the versions 1, 2 and 3, none of them promoted."""
    assert [add_version(registry, bundle, tmp_path / f"run{i}") for i in range(3)] == ["1", "2", "3"]
    return registry


def promote(registry: Registry, *versions: str) -> Champion:
    """Return the champion after these promotions."""
    return [registry.promote(version) for version in versions][-1]


@pytest.mark.parametrize(("uri", "model_id"), [("models:/m-1c92", "m-1c92"), ("runs:/1c92/bundle", None)])
def test_a_version_has_the_id_of_its_logged_model(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, uri: str, model_id: str | None
) -> None:
    sent: dict[str, object] = {}

    def create(_: MlflowClient, name: str, **fields: object) -> ModelVersion:
        sent.update(fields)
        return ModelVersion(name, "7", 0)

    monkeypatch.setattr(MlflowClient, "create_model_version", create)
    assert registry.register(uri, "a run", "0" * 64) == "7"
    assert sent["model_id"] == model_id


@pytest.mark.parametrize("given", [None, "http://tracking.example"])
def test_a_run_keeps_the_environment(given: str | None, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is a setting of the user; an embedded store does not change it."""
    monkeypatch.delenv(URI_VARIABLE, raising=False)
    if given:
        monkeypatch.setenv(URI_VARIABLE, given)
    with registry.run("a test"):
        pass
    assert os.environ.get(URI_VARIABLE) == given


@pytest.mark.parametrize(
    "changes",
    [
        "promote 1, promote 3, promote 2, back to 3, back to 1, back to none",
        "promote 1, promote 2, back to 1, promote 3, back to 1",
        "promote 1, promote 2, promote 2, back to 1, back to none",
        "promote 1, promote 3, promote 2, delete 3, back to 1",
        "back to none, promote 1, back to none",
    ],
)
def test_each_rollback_goes_one_champion_back(changes: str, three_versions: Registry) -> None:
    for change in changes.split(", "):
        action, *_, version = change.split()
        before = version_of(three_versions.champion())
        if action == "delete":
            three_versions._client.delete_model_version("roofcast", version)
        elif version == "none":
            with pytest.raises(NoAnswerError, match="no earlier champion"):
                three_versions.rollback()
            assert version_of(three_versions.champion()) == before
        else:
            assert action == "promote" or three_versions.previous().version == version
            changed = three_versions.promote(version) if action == "promote" else three_versions.rollback()
            assert changed.version == version_of(three_versions.champion()) == version


def test_a_rollback_from_a_replaced_champion_is_refused(three_versions: Registry) -> None:
    champion = promote(three_versions, "1", "2")
    three_versions.promote("3")
    with pytest.raises(NoAnswerError, match="the champion must be version 2, got version 3"):
        three_versions.rollback(champion)
    assert version_of(three_versions.champion()) == "3"
    assert three_versions.rollback(three_versions.champion()).version == "2"


def test_a_store_holds_the_latest_champions_and_the_start_of_a_long_description(
    three_versions: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry_module, "MAX_EARLIER", 2)
    promote(three_versions, "1", "2", "3", "1")
    assert [three_versions.rollback().version for _ in range(2)] == ["3", "2"]
    with pytest.raises(NoAnswerError, match="no earlier champion"):
        three_versions.rollback()
    three_versions.describe("1", "x" * 9000)
    assert three_versions.find("1").description == "x" * registry_module.MAX_DESCRIPTION


def test_a_change_waits_for_another_for_a_while(three_versions: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = three_versions
    registry.promote("1")
    monkeypatch.setattr(registry_module, "CHANGE_WAIT_S", 0.1)
    with registry.changing():
        assert registry.promote("2").version == "2", "the owner of the lock can change the champion"
        with ThreadPoolExecutor(1) as other:
            for change in (lambda: Registry(registry.home).promote("3"), registry.rollback):
                with pytest.raises(NotReadyError, match="another process is changing the champion"):
                    other.submit(change).result(30)
    assert version_of(registry.champion()) == "2"


def test_every_change_is_in_the_audit_log(three_versions: Registry, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "roofcast.audit"):
        three_versions.promote("1", by="me")
        three_versions.promote("2")
        three_versions.rollback(by="you")
    changes = [(r.action, r.caller, r.version_before, r.version) for r in caplog.records]  # type: ignore[attr-defined]
    assert changes == [
        ("promotion", "me", "none", "1"),
        ("promotion", "a program", "1", "2"),
        ("rollback", "you", "2", "1"),
    ]


@pytest.mark.parametrize("version", ["4", "", "latest", "1 "])
def test_an_unknown_version_is_not_promoted(version: str, three_versions: Registry) -> None:
    three_versions.promote("1")
    with pytest.raises(UnknownNameError, match="version: no "):
        three_versions.promote(version)
    assert version_of(three_versions.champion()) == "1"


def test_champion_history_and_bundles_persist(three_versions: Registry, bundle: ModelBundle) -> None:
    champion, reopened = promote(three_versions, "1", "2"), Registry(three_versions.home)
    assert reopened.champion() == champion
    assert reopened.load(champion).row_ids == bundle.row_ids
    assert reopened.rollback().version == "1"


def test_a_bundle_is_downloaded_once(three_versions: Registry, tmp_path: Path) -> None:
    champion = three_versions.promote("1")
    three_versions.load(champion)
    (tmp_path / "run0" / FILE_NAME).unlink()
    assert three_versions.load(champion).row_ids


def test_a_bundle_damaged_in_the_store_is_refused_until_repaired(three_versions: Registry, tmp_path: Path) -> None:
    champion, file = three_versions.promote("2"), tmp_path / "run1" / FILE_NAME
    content = file.read_bytes()
    for damaged in (b"something else", content[:1000]):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match="does not have the registered checksum"):
            three_versions.load(champion)
    file.write_bytes(content)
    assert three_versions.load(champion).row_ids


def test_a_bundle_with_damaged_trees_is_refused_whatever_its_checksum(
    registry: Registry, bundle: ModelBundle, home: Path, tmp_path: Path
) -> None:
    damaged = deepcopy(bundle)
    regressor = damaged.predictor.regressors_["tpot_s"]
    model = parse_ubjson(regressor.members_[0])
    tree = model["learner"]["gradient_booster"]["model"]["trees"][0]
    tree["left_children"] = tree["left_children"] * 10**6
    regressor.members_ = [write_ubjson(model)]
    (tmp_path / "run").mkdir()
    file = tmp_path / "run" / FILE_NAME
    write_object(file, damaged, CLASSES, {"layout": ModelBundle.layout()})
    with registry.run("a test") as run_id:
        pass
    version = registry.register(file.parent.as_uri(), run_id, sha256(file))
    with pytest.raises(
        InputError, match=rf"bundle: {FILE_NAME} cannot be used: the trees of .* are damaged .*retrain"
    ):
        registry.load(registry.promote(version))
    assert not [*(home / "bundles").iterdir()]


def test_a_version_without_a_bundle_is_refused(registry: Registry, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    (folder / "note.txt").touch()
    with registry.run("a test") as run_id:
        pass
    version = registry.register(folder.as_uri(), run_id, "0" * 64)
    with pytest.raises(InputError, match=rf"bundle: version {version} holds no bundle\.roofcast: .*; retrain"):
        registry.load(registry.promote(version))


def test_a_version_without_files_is_refused(registry: Registry, tmp_path: Path) -> None:
    with registry.run("a test") as run_id:
        pass
    for source in ((tmp_path / "gone").as_uri(), f"runs:/{run_id}/bundle"):
        version = registry.register(source, run_id, "0" * 64)
        with pytest.raises(InputError, match=f"bundle: version {version} has lost its files; promote another one"):
            registry.load(registry.find(version))


@pytest.fixture
def unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return Registry(tmp_path, f"http://127.0.0.1:{port}")


CALLS: dict[str, Callable[[Registry], object]] = {
    "champion": lambda r: r.champion(),
    "versions": lambda r: r.versions(),
    "promote": lambda r: r.promote("1"),
    "rollback": lambda r: r.rollback(),
    "previous": lambda r: r.previous(),
    "register": lambda r: r.register("runs:/x", "x", "0"),
    "load": lambda r: r.load(Champion("1", "x", "0" * 64, r.key.sign("0" * 64))),
    "run": lambda r: r.run("x").__enter__(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_server_that_does_not_answer_is_an_error_with_its_address(
    call: Callable[[Registry], object], unreachable: Registry
) -> None:
    with pytest.raises(NotReadyError, match=rf"the MLflow store {unreachable.tracking_uri} does not answer"):
        call(unreachable)


@pytest.mark.parametrize(
    "spoil",
    [Path.mkdir, lambda file: file.write_text("not a database, " * 100)],
    ids=["folder", "text"],
)
def test_a_store_that_is_no_database_is_not_ready(spoil: Callable[[Path], object], tmp_path: Path) -> None:
    spoil(tmp_path / "mlflow.db")
    with pytest.raises(NotReadyError, match="does not answer"):
        Registry(tmp_path).champion()


@pytest.mark.slow  # two processes that import MLflow
def test_two_processes_may_create_the_store_at_once(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from roofcast.training.lifecycle.registry.registry import Registry; "
        "Registry(pathlib.Path(sys.argv[1])).run('x').__enter__()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]  # noqa: S603
    for process in processes:
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, errors


def test_the_stamp_changes_only_with_a_promotion(three_versions: Registry) -> None:
    before = three_versions.stamp()
    three_versions.versions()
    assert before
    assert three_versions.stamp() == before
    three_versions.promote("1")
    assert three_versions.stamp() != before


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


def test_a_store_without_a_change_counter_has_no_stamp(tmp_path: Path) -> None:
    assert Registry(tmp_path).stamp() == ""
    assert Registry(tmp_path, "http://127.0.0.1:1").stamp() == ""
    (tmp_path / "mlflow.db").write_bytes(b"SQLite format 3\0\x10\0\2\2" + bytes(80))
    assert Registry(tmp_path).stamp() == ""


@pytest.fixture
def shipped(bundle: ModelBundle, tmp_path: Path) -> ShippedPredictor:
    file = tmp_path / "shipped.roofcast"
    checksum = bundle.save(file)
    return ShippedPredictor(Champion(f"shipped-{checksum[:8]}", "", checksum), file)


def test_the_shipped_predictor_is_the_champion_of_an_empty_registry(
    shipped: ShippedPredictor, bundle: ModelBundle, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    registry = Registry(home, shipped=shipped)
    champion = registry.champion()
    assert champion == shipped.champion
    assert registry.versions() == [champion]
    assert registry.has(champion)
    assert registry.load(champion).row_ids == bundle.row_ids
    with pytest.raises(NoAnswerError, match="no earlier champion"):
        registry.previous()
    assert not [*home.iterdir()], "MLflow creates its store on first use"


def test_the_shipped_predictor_is_promoted_and_rolled_back_to_like_a_version(
    shipped: ShippedPredictor, home: Path, bundle: ModelBundle, tmp_path: Path
) -> None:
    registry = Registry(home, shipped=shipped)
    name = shipped.champion.version
    assert registry.promote(name) == shipped.champion
    version = add_version(registry, bundle, tmp_path / "run")
    assert version_of(registry.champion()) == name
    registry.promote(version)
    assert version_of(registry.champion()) == version
    assert registry.rollback() == shipped.champion == registry.champion()
    with pytest.raises(NoAnswerError, match="no earlier champion"):
        registry.rollback()
    registry.promote(version)
    registry.promote(name)
    assert version_of(registry.champion()) == name
    assert version_of(registry.rollback()) == version
    assert [champion.version for champion in registry.versions()] == [version, name]
    assert version_of(Registry(home).champion()) == version


def test_rollback_to_a_shipped_predictor_of_an_earlier_package_returns_to_the_present_one(
    shipped: ShippedPredictor, home: Path, bundle: ModelBundle, tmp_path: Path
) -> None:
    registry = Registry(home, shipped=shipped)
    registry.promote(add_version(registry, bundle, tmp_path / "run"))
    newer = replace(shipped, champion=replace(shipped.champion, version="shipped-of-an-upgrade"))
    assert Registry(home, shipped=newer).rollback() == newer.champion
    with pytest.raises(NoAnswerError, match="no earlier champion"):
        Registry(home, shipped=newer).rollback()
