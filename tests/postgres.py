"""A PostgreSQL server on loopback that runs during the tests."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.conditions import wait_until

REQUIRED_VARIABLE = "ROOFCAST_TEST_POSTGRES"
"""Set to ``required`` where a missing server is a failure and not a reason to skip."""


def server_binaries() -> Path | None:
    """Return the folder of initdb and pg_ctl, or None if no server is installed."""
    on_path = shutil.which("initdb")
    candidates = [Path(on_path)] if on_path else sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return candidates[-1].parent if candidates else None


def _as_owner(*command: str | Path) -> None:
    """Run a command as a user whom PostgreSQL accepts: it refuses root."""
    words = [str(word) for word in command]
    prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    subprocess.run([*prefix, *words], check=True, stdout=subprocess.DEVNULL, cwd="/")  # noqa: S603  (our own commands)


class PostgresServer:
    """A cluster in a temporary folder at a free port; it can be killed and started again.

    Parameters
    ----------
    binaries
        Folder of initdb and pg_ctl.
    fsync
        Whether commits reach the disk; those of a server whose machine stays up survive without.
    """

    def __init__(self, binaries: Path, fsync: str = "off") -> None:
        self._binaries = binaries
        self._folder = Path(tempfile.mkdtemp(prefix="roofcast-pg-"))
        if os.geteuid() == 0:
            shutil.chown(self._folder, "postgres")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories= -c fsync={fsync}"
        self.url = f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
        """URL of the maintenance database."""
        options = ("-A", "trust", "-U", "postgres", "--no-locale", "-E", "UTF8")
        _as_owner(binaries / "initdb", "-D", self._data, *options)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def start(self) -> None:
        """Start the server and wait until it answers, after a kill once it has recovered."""
        log = self._folder / "log"
        _as_owner(
            self._binaries / "pg_ctl", "-D", self._data, "-l", log, "-w", "-t", "600", "-o", self._options, "start"
        )

    def kill(self) -> None:
        """Kill all processes of the server and wait for their end; the first is stopped, so that it starts no more.

        Its lock file is removed: the id in it may be that of a process that has ended and waits for its parent.
        """
        os.kill(self._pids()[0], signal.SIGSTOP)
        pids = self._pids()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(is_running(pid) for pid in pids))
        (self._data / "postmaster.pid").unlink()

    def _pids(self) -> list[int]:
        """Return the ids of the first process and of its children."""
        first = int((self._data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]

    def remove(self) -> None:
        """Stop the server, if it runs, and remove the cluster."""
        with suppress(subprocess.CalledProcessError):
            _as_owner(self._binaries / "pg_ctl", "-D", self._data, "-m", "immediate", "stop")
        shutil.rmtree(self._folder, ignore_errors=True)


def is_running(pid: int) -> bool:
    """Return whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def running_server(binaries: Path) -> Iterator[str]:
    """Run a server and give the URL of its maintenance database."""
    server = PostgresServer(binaries)
    try:
        server.start()
        yield server.url
    finally:
        server.remove()


def new_database(server_url: str) -> str:
    """Create an empty database on the server and return its URL."""
    import psycopg  # noqa: PLC0415  (an optional driver)

    name = f"test_{uuid.uuid4().hex}"
    server = server_url.replace("+psycopg", "")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return server_url.removesuffix("postgres") + name
