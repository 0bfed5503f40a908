"""Schemathesis over the whole OpenAPI document: every operation by example, by coverage of its schema, by chance."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attack.conftest import EFFORT
from tests.attack.service import Service

ROOT = Path(__file__).parents[2]
N_EXAMPLE = 4 if EFFORT == 1 else 100 * EFFORT

WHAT_NO_SCHEMA_SAYS = "positive_data_acceptance"
"""A name must be in the catalogue, a configuration a language model's: 404 and 422 are right for sound JSON."""


@pytest.mark.parametrize(
    "phases", ["examples", pytest.param("examples,coverage,fuzzing,stateful", marks=pytest.mark.slow, id="all")]
)
def test_no_5xx_and_nothing_that_is_not_documented(
    service: Service, admin_key: str, tmp_path: Path, phases: str
) -> None:
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "run", f"{service.url}/openapi.json",
        "--header", f"Authorization: Bearer {admin_key}", "--phases", phases,
        "--exclude-checks", WHAT_NO_SCHEMA_SAYS, "--max-examples", str(N_EXAMPLE), "--workers", "2",
        "--request-timeout", "600", "--continue-on-failure", "--no-color", "--generation-database", "none",
        *(["--seed", "0"] if EFFORT == 1 else []),
    ]  # fmt: skip
    variables = {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "SCHEMATHESIS_HOOKS": "tests.attack.media_types",
    }
    found = subprocess.run(  # noqa: S603  (our own command)
        command, cwd=tmp_path, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout[-20_000:] + found.stderr[-2_000:]
    assert "Selected: " in found.stdout
    print(found.stdout[found.stdout.index("API Operations:") :])


@pytest.fixture(autouse=True)
def tool() -> None:
    if shutil.which("schemathesis", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("schemathesis is not installed")
