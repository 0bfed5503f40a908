"""Modules that a command does not import: each takes longer than the command itself."""

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
from roofcast.serving.cli.app import main
for command in json.loads(sys.argv[1]):
    sys.argv = ["roofcast", *command]
    try:
        main()
    except SystemExit as end:
        print("END", json.dumps([end.code or 0, sorted(sys.modules)]))
"""
WEB = {"fastapi", "starlette", "uvicorn", "httpx"}
LEARNING = {"sklearn", "scipy", "xgboost", "joblib", "mlflow", "matplotlib", "shap", "huey", "pandera"}
STORE = {"sqlalchemy", "alembic"}
TABLES = {"pandas", "numpy"}


def check_imports(home: Path, commands: list[list[str]], unwanted: set[str], **variables: str) -> None:
    """Check that commands, run one after the other in one process, succeed and import none of the packages."""
    environment = {**os.environ, "ROOFCAST_HOME": str(home), **variables}
    arguments = [sys.executable, "-c", CODE, json.dumps(commands)]
    result = subprocess.run(arguments, env=environment, check=False, capture_output=True, text=True)  # noqa: S603
    ends = [json.loads(line[4:]) for line in result.stdout.splitlines() if line.startswith("END ")]
    assert len(ends) == len(commands), result.stderr
    for command, (status, modules) in zip(commands, ends, strict=True):
        assert status == 0, (command, result.stderr)
        assert not {name.partition(".")[0] for name in modules} & unwanted, command


def test_help_imports_no_numeric_or_web_library(tmp_path: Path) -> None:
    commands = [["--help"], ["recommend", "--help"], ["predict", "--example"]]
    check_imports(tmp_path, commands, WEB | LEARNING | STORE | TABLES | {"pydantic_settings"})


def test_completion_imports_no_numeric_or_web_library(tmp_path: Path) -> None:
    for words in ("roofcast pre", "roofcast explain --engine v", "roofcast explain --load o"):
        variables = {"_ROOFCAST_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        check_imports(tmp_path, [[]], WEB | LEARNING | STORE | TABLES | {"pydantic_settings"}, **variables)


def test_a_listing_imports_neither_pandas_nor_the_store(tmp_path: Path) -> None:
    listings = [["models"], ["accelerators"], ["accelerators", "--lint"], ["offers"], ["campaigns"]]
    check_imports(tmp_path, [[*listing, "--json"] for listing in listings], WEB | LEARNING | STORE | TABLES)


def test_a_listing_of_rows_imports_no_learning_library(tmp_path: Path) -> None:
    check_imports(tmp_path, [["formats", "--json"], ["measurements", "--json"]], WEB | LEARNING)


@pytest.mark.parametrize(
    "names", [["explain"], pytest.param(["predict", "explain", "whatif", "recommend"], marks=pytest.mark.slow)]
)
def test_an_answer_imports_neither_mlflow_nor_store_nor_web_libraries(tmp_path: Path, names: list[str]) -> None:
    row = f"model,accelerator,n_input_token,n_output_token\n{MODEL},{ACCELERATOR},120,20\n"
    rows = write_file(tmp_path, "rows.csv", row)
    question = ("--model", MODEL, "--accelerator", ACCELERATOR, "--n-input-token", "120", "--n-output-token", "20")
    demand = ("--isl", "120", "--osl", "20", "--users", "2", "--slo", "itl:p50<=1s", "--provider", "aws")
    options = {
        "predict": ["--rows", str(rows), "--out", str(tmp_path / "out.csv")],
        "explain": [*question],
        "whatif": [*question, "--sweep", "bandwidth=1,2"],
        "recommend": ["--model", MODEL, *demand],
    }
    check_imports(
        tmp_path,
        [[name, *options[name]] for name in names],
        WEB | STORE | {"mlflow", "matplotlib", "pandera", "sklearn", "xgboost"},
    )
