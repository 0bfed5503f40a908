"""The shell completes names of the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofcast.serving.cli import app
from roofcast.serving.cli.completion import complete_model


def test_a_model_is_completed_by_either_part_of_its_name() -> None:
    assert complete_model("Qwen3-32B") == ["Qwen3-32B"]
    assert complete_model("Qwen/Qwen3-32B") == ["Qwen/Qwen3-32B"]
    assert complete_model("nothing") == []


def test_the_shell_gets_the_values_of_an_option(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = "roofcast recommend --accelerator nvidia-h200-s"
    for name, value in {"_ROOFCAST_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "3"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.argv", ["roofcast"])
    with pytest.raises(SystemExit):
        app.app(prog_name="roofcast")
    assert capsys.readouterr().out.strip() == "nvidia-h200-sxm-141gb"
