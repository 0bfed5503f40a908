"""nginx with the configuration of the deployment, in front of a server of a test."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.conditions import wait_until
from tests.deploy.files import KUBERNETES

NGINX: Final = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
CONFIGURATION: Final = KUBERNETES / "nginx.conf"

needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed; continuous integration installs it")

Address = tuple[str, int]


@contextmanager
def proxying(upstream: Address, folder: Path, wait_s: int = 15) -> Iterator[Address]:
    """Run the proxy during the block and yield its address; only addresses, folders and time limits are replaced."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address: Address = probe.getsockname()
    text = CONFIGURATION.read_text(encoding="utf-8")
    for old, new in {
        "server roofcast:8000;": f"server {upstream[0]}:{upstream[1]};",
        "listen 8080;": f"listen {address[0]}:{address[1]};",
        "/tmp/": f"{folder}/",  # noqa: S108  (text of the file)
        "_timeout 15s;": f"_timeout {wait_s}s;",
        "worker_processes auto;": "worker_processes 1; daemon off;",
    }.items():
        assert old in text
        text = text.replace(old, new)
    file = folder / "nginx.conf"
    file.write_text(text, encoding="utf-8")
    command = [str(NGINX), "-e", "stderr", "-p", str(folder), "-c", str(file)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603  (our own command)
    try:
        wait_until(lambda: _is_open(address, process))
        yield address
    finally:
        process.terminate()
        process.wait()


def _is_open(address: Address, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "nginx ended"
    try:
        socket.create_connection(address).close()
    except ConnectionRefusedError:
        return False
    return True
