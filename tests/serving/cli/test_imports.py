"""Modules that a command does not import: each takes longer than the command itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving.http_client import ACCELERATOR, MODEL
from tests.serving.user_files import write_file

CODE = """
import json, sys
sys.argv = ["roofcast", *sys.argv[1:]]
from roofcast.serving.cli.app import main
try:
    main()
except SystemExit as end:
    print(json.dumps([end.code or 0, sorted(sys.modules)]))
"""
WEB = {"fastapi", "starlette", "uvicorn", "httpx"}
LEARNING = {"sklearn", "scipy", "xgboost", "joblib", "mlflow", "matplotlib", "shap", "huey", "pandera"}
STORE = {"sqlalchemy", "alembic"}
TABLES = {"pandas", "numpy"}


def imported(home: Path, *arguments: str | Path, **variables: str) -> set[str]:
    """Return the packages that a successful command imports."""
    environment = {**os.environ, "ROOFCAST_HOME": str(home), **variables}
    command = [sys.executable, "-c", CODE, *map(str, arguments)]
    result = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)  # noqa: S603
    status, modules = json.loads(result.stdout.splitlines()[-1])
    assert status == 0, result.stderr
    return {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize("arguments", ["--help", "recommend --help", "predict --example"])
def test_help_imports_no_numeric_or_web_library(tmp_path: Path, arguments: str) -> None:
    assert not imported(tmp_path, *arguments.split()) & (WEB | LEARNING | STORE | TABLES | {"pydantic_settings"})


@pytest.mark.parametrize("words", ["roofcast pre", "roofcast explain --engine v", "roofcast explain --load o"])
def test_completion_imports_no_numeric_or_web_library(tmp_path: Path, words: str) -> None:
    variables = {"_ROOFCAST_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    assert not imported(tmp_path, **variables) & (WEB | LEARNING | STORE | TABLES | {"pydantic_settings"})


@pytest.mark.parametrize("listing", ["models", "accelerators", "accelerators --lint", "offers", "campaigns"])
def test_a_listing_imports_neither_pandas_nor_the_store(tmp_path: Path, listing: str) -> None:
    assert not imported(tmp_path, *listing.split(), "--json") & (WEB | LEARNING | STORE | TABLES)


@pytest.mark.parametrize("listing", ["formats", "measurements"])
def test_a_listing_of_rows_imports_no_learning_library(tmp_path: Path, listing: str) -> None:
    assert not imported(tmp_path, listing, "--json") & (WEB | LEARNING)


def test_a_prediction_imports_neither_mlflow_nor_store_nor_web_libraries(tmp_path: Path) -> None:
    row = f"model,accelerator,n_input_token,n_output_token\n{MODEL},{ACCELERATOR},120,20\n"
    rows = write_file(tmp_path, "rows.csv", row)
    question = ("--model", MODEL, "--accelerator", ACCELERATOR, "--n-input-token", "120", "--n-output-token", "20")
    demand = ("--isl", "120", "--osl", "20", "--users", "2", "--slo", "itl:p50<=1s", "--provider", "aws")
    for arguments in (
        ("predict", "--rows", rows, "--out", tmp_path / "out.csv"),
        ("explain", *question),
        ("whatif", *question, "--sweep", "bandwidth=1,2"),
        ("recommend", "--model", MODEL, *demand),
    ):
        assert not imported(tmp_path, *arguments) & (WEB | STORE | {"mlflow", "matplotlib", "pandera"}), arguments
