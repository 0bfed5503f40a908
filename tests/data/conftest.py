from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.postgres import REQUIRED_VARIABLE, running_server, server_binaries


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    binaries = server_binaries()
    if binaries is None:
        if os.environ.get(REQUIRED_VARIABLE) == "required":
            pytest.fail("no PostgreSQL server is installed, and the environment says it must be")
        pytest.skip("no PostgreSQL server is installed")
    with running_server(binaries) as url:
        yield url
