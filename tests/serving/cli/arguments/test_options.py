"""Options that are declared in tables."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import typer

from roofcast.data.measurements.column_types import Column
from roofcast.data.measurements.job_schema import TRAINING_CONFIG_COLUMNS
from roofcast.data.measurements.schema import INPUT_COLUMNS
from roofcast.serving.cli import app
from roofcast.serving.cli.arguments.options import column_options, complete_model, parse_amount


@pytest.mark.parametrize("columns", [INPUT_COLUMNS, TRAINING_CONFIG_COLUMNS])
def test_the_options_of_columns_have_help_and_those_of_numbers_take_suffixes(columns: Mapping[str, Column]) -> None:
    options = column_options(columns)
    assert all(option.help[0].isalnum() and option.help.endswith(".") for option in options.values())
    numbers = {name for name in options if columns[name].kind == "float"}
    assert {name for name, option in options.items() if option.parse} == numbers
    assert {option.parse("4k") for option in options.values() if option.parse} == {4000}


@pytest.mark.parametrize(
    ("text", "value"),
    [("10m", 1e7), ("1.5B", 1.5e9), ("2g", 2e9), ("32K", 32e3), ("2e7", 2e7), ("1_000", 1e3), ("1t", 1e12)],
)
def test_amounts_take_decimal_suffixes(text: str, value: float) -> None:
    assert parse_amount(text) == value


@pytest.mark.parametrize("text", ["10q", "m", "", "1,5m", "10 mm", "nan"])
def test_another_form_names_those_that_are_read(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"20000000, 2e7 or 20m; suffixes are k"):
        parse_amount(text)


def test_a_model_is_completed_by_either_part_of_its_name() -> None:
    assert complete_model("Qwen3-32B") == ["Qwen3-32B"]
    assert complete_model("Qwen/Qwen3-32B") == ["Qwen/Qwen3-32B"]
    assert complete_model("nothing") == []


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("roofcast pre", ["predict"]),
        ("roofcast training ", ["predict", "import", "recommend"]),
        ("roofcast predict --ro", ["--rows"]),
        ("roofcast recommend --accelerator nvidia-h200-s", ["nvidia-h200-sxm-141gb"]),
        ("roofcast recommend --accelerator h200-s", ["h200-sxm-141gb"]),
        ("roofcast recommend --engine v", ["vllm"]),
        ("roofcast recommend --deployment k", ["kserve", "kubernetes"]),
        ("roofcast training recommend --framework t", ["torchtitan", "transformers"]),
        ("roofcast recommend --pricing re", ["reserved_1y", "reserved_3y"]),
        ("roofcast explain --engine sg", ["sglang"]),
        ("roofcast explain --weight-precision fp1", ["fp16"]),
        ("roofcast training predict --sharding zero", ["zero1", "zero2", "zero3"]),
        ("roofcast training predict --flash-attention ", ["off", "on"]),
        ("roofcast training recommend --method q", ["qlora"]),
        ("roofcast retrain --target t", ["training"]),
        ("roofcast explain --tp ", []),
    ],
)
def test_the_shell_completes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, completed: list[str]
) -> None:
    environment = {"_ROOFCAST_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.argv", ["roofcast"])
    with pytest.raises(SystemExit):
        app.app(prog_name="roofcast")
    assert capsys.readouterr().out.split() == completed


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_completes_with_the_installed_script(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("roofcast")
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    line = """
        roofcast --install-completion && source ~/.bashrc
        COMP_WORDS=(roofcast pre) COMP_CWORD=1
        "$(complete -p roofcast | sed 's/.*-F //; s/ .*//')" roofcast pre roofcast
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    shell = ["bash", "--norc", "-c", line]
    result = subprocess.run(shell, env=environment, check=False, capture_output=True, text=True)  # noqa: S603
    assert result.stdout.splitlines()[-1:] == ["predict"], result.stderr
