"""Server processes of a service with several of them."""

import logging
from socket import socket

from uvicorn.supervisors.multiprocess import Process


class ServerProcess(Process):
    """A server process whose end is noticed at once, and whose warnings are log lines.

    The supervisor asks each process in turn whether it is alive and waits for its answer. While the supervisor itself
    holds the process's end of the pipe, a process that dies before it answers closes nothing: the supervisor waits
    for the whole of `timeout_worker_healthcheck` and replaces no other process meanwhile.
    """

    def start(self) -> None:
        """Start the process, and leave its end of the pipe to it."""
        super().start()
        self.child_conn.close()

    def target(self, sockets: list[socket] | None = None) -> None:
        """Serve; warnings are captured here because a log configuration cannot say so."""
        logging.captureWarnings(True)
        super().target(sockets)
