"""Schemathesis over the OpenAPI document: each operation by its examples, coverage of its schema, and fuzzing."""

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

EXCLUDED_CHECKS = "positive_data_acceptance"
"""Checks that a schema cannot express: a valid request gets 404 or 422 if a name or a configuration is unknown."""


REFUSALS = """[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429, "5xx"]
"""
"""The defaults of schemathesis, and 413: more rows than a schema admits may be more than a body may hold."""


@pytest.mark.slow
def test_responses_are_documented_and_never_5xx(service: Service, admin_key: str, tmp_path: Path) -> None:
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "run", f"{service.url}/openapi.json",
        "--header", f"Authorization: Bearer {admin_key}", "--phases", "examples,coverage,fuzzing,stateful",
        "--exclude-checks", EXCLUDED_CHECKS, "--max-examples", str(N_EXAMPLE), "--workers", "1",
        "--request-timeout", "600", "--continue-on-failure", "--no-color", "--generation-database", "none",
        *(["--seed", "0"] if EFFORT == 1 else []),
    ]  # fmt: skip
    variables = {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "SCHEMATHESIS_HOOKS": "tests.attack.media_types",
    }
    (tmp_path / "schemathesis.toml").write_text(REFUSALS)
    run = subprocess.run(  # noqa: S603  (our own command)
        command, cwd=tmp_path, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2_000:]
    assert "Selected: " in run.stdout
    print(run.stdout[run.stdout.index("API Operations:") :])


@pytest.fixture(autouse=True)
def tool() -> None:
    if shutil.which("schemathesis", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("schemathesis is not installed")
