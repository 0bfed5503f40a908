"""The built wheel in a clean environment has everything that a user needs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    variables = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    result = subprocess.run(  # noqa: S603  (our own commands)
        [str(part) for part in command],
        cwd=cwd,
        env={**variables, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment_of_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
    run(sys.executable, *pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    wheel = next(folder.glob("roofcast-*.whl"))
    assert wheel.stat().st_size < 15_000_000
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    run(python, *pip, "install", "--require-hashes", "-r", ROOT / "requirements" / "serve.txt", cwd=folder)
    run(python, *pip, "install", "--no-deps", wheel, cwd=folder)
    return folder / "venv" / "bin"


def test_the_wheel_has_catalogue_measurements_and_migrations(environment_of_wheel: Path, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    models = json.loads(run(environment_of_wheel / "roofcast", "models", "--json", cwd=tmp_path, ROOFCAST_HOME=home))
    campaigns = json.loads(
        run(environment_of_wheel / "roofcast", "campaigns", "--json", cwd=tmp_path, ROOFCAST_HOME=home)
    )
    assert len(models) > 150
    assert campaigns[0]["name"] == "llm_pilot"
    run(environment_of_wheel / "roofcast", "measurements", "--json", cwd=tmp_path, ROOFCAST_HOME=home)
    assert (tmp_path / "home" / "roofcast.sqlite").is_file()
    code = "from roofcast.data.campaigns import load_campaigns; print(len(load_campaigns(['llm_pilot'])))"
    assert run(environment_of_wheel / "python", "-c", code, cwd=tmp_path).strip() == "2632"


def test_every_layer_is_typed(environment_of_wheel: Path, tmp_path: Path) -> None:
    code = """
import importlib.resources as r
parts = ("data", "features", "training", "serving")
print(all((r.files(f"roofcast.{part}") / "py.typed").is_file() for part in parts))
"""
    assert run(environment_of_wheel / "python", "-c", code, cwd=tmp_path).strip() == "True"
