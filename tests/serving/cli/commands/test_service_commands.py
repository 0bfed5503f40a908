import logging
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from socket import socket

import pytest
from uvicorn import Config

from roofcast.data.store.api_keys import KeyStore, digest_of
from roofcast.data.store.measurement_store import MeasurementStore
from roofcast.serving.app_state.settings import load_settings
from roofcast.serving.cli.server_process import ServerProcess
from tests.conditions import wait_until
from tests.serving.http_client import Run


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder that nobody may write in, the super-user neither")
def test_a_service_does_not_start_in_a_state_folder_that_cannot_be_written(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOFCAST_HOME", "/proc/self/task")
    err = run.error("serve", "--port", "0", status=1)
    assert "error: the state folder /proc/self/task cannot be written: " in err
    assert "set ROOFCAST_HOME to another folder" in err


LONG_S = 3600


class Importing(ServerProcess):
    """A process that never gets as far as to answer."""

    def target(self, sockets: list[socket] | None = None) -> None:  # noqa: ARG002
        """Do what a process does before it answers."""
        time.sleep(LONG_S)


def test_a_process_that_dies_before_it_answers_is_noticed_at_once() -> None:
    process = Importing(Config("app:app", log_config=None), [])
    process.start()
    found: list[bool] = []
    asking = threading.Thread(target=lambda: found.append(process.ping(timeout=LONG_S)), daemon=True)
    asking.start()
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    wait_until(lambda: bool(found))
    assert found == [False]


class Asked:
    """A server whose run emits a warning."""

    def run(self, sockets: list[socket] | None) -> None:  # noqa: ARG002
        warnings.warn("said by a library", stacklevel=1)


def test_a_warning_in_a_server_process_is_a_log_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = ServerProcess(Config("app:app", log_config=None), [])
    monkeypatch.setattr(process, "_server", Asked())
    monkeypatch.setattr(process, "always_pong", lambda: None)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        process.target()
        logging.captureWarnings(False)
    assert ["said by a library" in line.getMessage() for line in caplog.records] == [True]


def test_a_key_is_created_listed_and_revoked(run: Run) -> None:
    status, secret, err = run("keys", "create", "ci", "--scope", "write", "--expires-in-days", "30")
    assert status == 0
    assert secret.count("\n") == 1, "standard output has the key alone"
    assert "ci may write until" in err
    with MeasurementStore(load_settings().store_url) as store:
        key = KeyStore(store.database).find(digest_of(secret.strip()))
    assert key is not None
    assert key.expires_at is not None
    assert (key.expires_at - key.created_at).days == 30
    listed = run.json("keys", "list")
    assert [(row["name"], row["scope"], row["last_four"], row["state"]) for row in listed] == [
        ("ci", "write", secret.strip()[-4:], "valid")
    ]
    assert secret.strip() not in run("keys", "list")[1]
    assert "revoked" in run("keys", "revoke", "ci")[1]
    assert run.json("keys", "revoke", "ci")[0]["state"] == "revoked"


def test_a_created_key_is_printed_as_json(run: Run) -> None:
    key = run.json("keys", "create", "page", "--scope", "read")
    assert key["key"].endswith(key["last_four"])
    assert key["expires_at"] is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("revoke", "nobody"), "no 'nobody' is known"),
        (("create", "a b", "--scope", "read"), "letters, digits"),
        (("create", "a", "--scope", "read", "--expires-in-days", "0"), "longer than 0"),
        (("create", "a", "--scope", "root"), "--scope: must be one of read, write, admin, got 'root'"),
    ],
)
def test_invalid_key_commands_are_errors(run: Run, arguments: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    assert problem in run.error("keys", *arguments)
