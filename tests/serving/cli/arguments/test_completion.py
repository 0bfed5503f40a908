"""The shell completes names of the catalogue."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from roofcast.serving.cli import app
from roofcast.serving.cli.arguments.completion import complete_model


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
