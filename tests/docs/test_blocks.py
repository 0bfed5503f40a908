"""Every block of the documentation runs: commands have their options, and pages work from top to bottom."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import uvicorn

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.cli.app import app
from roofcast.serving.http.app import create_app
from roofcast.training.lifecycle.shipped import shipped_predictor
from tests.conditions import wait_until
from tests.data.row_builders import SAMPLES
from tests.docs.pages import PAGES, blocks, commands

SHELL_PAGES = [page for page in PAGES if any(True for block in blocks(page, "sh") for _ in commands(block))]
RUN_PAGES = [page for page in SHELL_PAGES if page != "docs/OPERATION.md"]
NOT_RUN = ("make ", "roofcast serve", "roofcast retrain\n")
"""Blocks that other tests run: the service and the training."""


@pytest.mark.parametrize("page", SHELL_PAGES)
def test_every_command_has_its_options(page: str) -> None:
    listed = [arguments for block in blocks(page, "sh") for arguments in commands(block)]
    assert listed
    for arguments in listed:
        command: Any = typer.main.get_group(app)
        while hasattr(command, "commands") and not _runs_by_itself(command, arguments):
            command = command.commands[arguments.pop(0)]
        try:
            command.make_context(command.name, list(arguments))
        except typer.Exit:  # an eager option such as --example
            continue


def _runs_by_itself(group: Any, arguments: list[str]) -> bool:
    return group.invoke_without_command and (not arguments or arguments[0].startswith("-"))


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the address of a service of the shipped predictor on the state folder of the environment."""
    monkeypatch.setattr("roofcast.serving.app_state.app_state.shipped_predictor", shipped_predictor)
    server = uvicorn.Server(uvicorn.Config(create_app(Settings(home=tmp_path / "home")), port=0, log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive())
    assert server.started
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN_PAGES)
def test_a_page_runs_from_top_to_bottom(page: str, service: str, tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "guidellm" / "rate.json", tmp_path / "guidellm.json")
    shutil.copy(SAMPLES / "vllm_bench" / "default.json", tmp_path / "vllm.json")
    run = [block for block in blocks(page, "sh") if not any(text in block for text in NOT_RUN)]
    script = "set -euo pipefail\n" + "\n".join(run).replace("http://127.0.0.1:8000", service)
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ROOFCAST_HOME": str(tmp_path / "home"),
    }
    result = subprocess.run(  # noqa: S603
        ["/bin/bash", "-c", script], cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert '"type":"urn:roofcast:problem' not in result.stdout
