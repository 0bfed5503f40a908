import logging
import os
import signal
import threading
import time
import warnings
from socket import socket

import pytest
from uvicorn import Config

from roofcast.serving.cli.server_process import ServerProcess
from tests.conditions import wait_until

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
