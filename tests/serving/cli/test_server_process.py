from __future__ import annotations

import os
import signal
import threading
import time
from socket import socket

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
