"""Every block of the documentation runs: commands have their options, and pages work from top to bottom."""

import os
import re
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
from roofcast.serving.composition import build_service
from roofcast.serving.http.app import create_app
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET
from roofcast.training.lifecycle.registry.tracking import log_bundle
from roofcast.training.lifecycle.shipped import load_shipped, shipped_predictor
from tests.conditions import wait_until
from tests.data.row_builders import SAMPLES
from tests.docs.pages import PAGES, all_blocks, blocks, commands
from tests.training.builders import a_subset

SHELL_PAGES = [page for page in PAGES if any(True for block in blocks(page, "sh") for _ in commands(block))]

LINE_LEFT_OUT = re.compile(r"(make serve|roofcast serve|roofcast retrain)( |$)")
"""Lines that the run of a page leaves out: a service runs already, and a retraining takes minutes."""

RUN_ELSEWHERE = {
    ("docs/CLIENT.md", "python"): "tests/docs/test_client_doc.py",
    ("docs/reference/requests.md", "json"): "tests/docs/test_requests_page.py",
}
"""Tests that run the blocks of a page and language."""

ILLUSTRATIONS = {
    ("docs/OPERATION.md", "{"): "an answer; tests/docs/test_requests_page.py compares its fields",
    ("docs/OPERATION.md", "roofcast retrain --shadow"): "alternatives; tests/serving/cli/commands/test_versions.py",
    ("docs/OPERATION.md", "pip install 'roofcast[dask]'"): "needs machines; tests/training/test_cluster.py",
    ("docs/OPERATION.md", "roofcast measurements withdraw --import ID\n"): "of a model of one's own; "
    "tests/serving/http/test_registered_models.py",
    ("docs/DEPLOYMENT.md", "docker build -t roofcast ."): "needs Docker; tests/deploy reads the Dockerfile",
    ("docs/DEPLOYMENT.md", "cp .env.example .env"): "needs Docker; tests/deploy reads compose.yaml",
    ("docs/DEPLOYMENT.md", "docker build -t registry.example"): "needs Docker and a cluster; tests/deploy",
    (
        "docs/how-to/import-measurements.md",
        "roofcast watch",
    ): "needs a server; tests/serving/cli/commands/test_watch.py",
    ("docs/how-to/measure-an-endpoint.md", "python3 -m venv ~/guidellm-venv"): "installs from a registry",
    ("docs/how-to/measure-an-endpoint.md", "python3 -m venv .llama"): "installs from a registry, runs for minutes",
    ("docs/how-to/retrain-nightly.md", "30 2 * * * cd"): "a line of cron; `test_times_of_cron_are_valid`",
    ("docs/how-to/retrain-nightly.md", 'ROOFCAST_RETRAIN_AT="'): "starts a service; `test_times_of_cron_are_valid`",
}
"""Blocks that no test runs, by their first words, and why; what is tested of them instead."""

SETUP = {
    "docs/OPERATION.md": (
        "ADMIN_KEY=$(roofcast keys create admin --scope admin)",
        "roofcast import auto own.csv --campaign own",
        "ID=$(roofcast measurements imports --json | python -c '"
        'import json, sys; print(json.load(sys.stdin)[0]["import_id"])\')',
    ),
}
"""Lines before the blocks of a page that describe a service with measurements, versions and keys."""

REPLACED = {
    "docs/OPERATION.md": {
        "--import ID": "--import $ID",
        '"ID"': "\"'$ID'\"",
        "Bearer $KEY": "Bearer ${ADMIN_KEY:-$KEY}",
    }
}
"""Placeholders of a page."""


def is_illustration(page: str, text: str) -> bool:
    return any(page == one and text.startswith(words) for one, words in ILLUSTRATIONS)


def runs(page: str, language: str, text: str) -> bool:
    """Return whether `test_a_page_runs_from_top_to_bottom` runs a block."""
    is_elsewhere = (page, language) in RUN_ELSEWHERE or is_illustration(page, text)
    return language in {"sh", "python"} and not is_elsewhere


def script_of(page: str) -> str:
    """Return the blocks of a page as one shell script."""
    parts = [*SETUP.get(page, ())]
    for language, text in all_blocks(page):
        if not runs(page, language, text):
            continue
        if language == "python":
            parts.append(f"python - <<'PYTHON'\n{text}PYTHON")
            continue
        parts += [line for line in text.splitlines() if not LINE_LEFT_OUT.match(line)]
    script = "\n".join(parts)
    for placeholder, value in REPLACED.get(page, {}).items():
        script = script.replace(placeholder, value)
    return script


RUN_PAGES = [page for page in PAGES if any(runs(page, *block) for block in all_blocks(page))]


def test_every_block_runs_or_has_a_reason() -> None:
    listed = {(page, language, text) for page in PAGES for language, text in all_blocks(page)}
    others = {
        (page, text.splitlines()[0])
        for page, language, text in listed
        if not runs(page, language, text) and (page, language) not in RUN_ELSEWHERE
    }
    assert {one for one in others if not is_illustration(one[0], f"{one[1]}\n")} == set()
    for page, words in ILLUSTRATIONS:
        assert any(one == page and text.startswith(words) for one, _, text in listed), (page, words)


def test_times_of_cron_are_valid() -> None:
    times = [
        found
        for page in PAGES
        for _, text in all_blocks(page)
        for found in re.findall(r"^(?:\S*RETRAIN_AT=\")?((?:[\d*/,-]+ ){4}[\d*/,-]+)", text, re.MULTILINE)
    ]
    assert len(times) >= 2
    for one in times:
        assert Settings(retrain_at=one).retrain_at == one


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


def register_versions(home: Path, n: int) -> None:
    """Register the shipped predictor several times in a state folder; the last but one is the champion."""
    service, bundle = build_service(Settings(home=home)), load_shipped(INFERENCE_TARGET)
    versions = []
    for _ in range(n):
        with service.registry.run("shipped") as run_id:
            checksum, uri = log_bundle(bundle, a_subset().X, run_id)
        versions.append(service.registry.register(uri, run_id, checksum))
    for version in versions[:-1]:
        service.registry.promote(version)
    service.store.close()


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the address of a service of the shipped predictor on the state folder of the environment."""
    monkeypatch.setattr("roofcast.serving.composition.shipped_predictor", shipped_predictor)
    if request.node.callspec.params["page"] == "docs/OPERATION.md":
        register_versions(tmp_path / "home", 3)
    server = uvicorn.Server(uvicorn.Config(create_app(Settings(home=tmp_path / "home")), port=0, log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive())
    assert server.started
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


OWN_ROWS = """\
model,accelerator,n_accelerator,engine,n_input_token,n_output_token,concurrency,statistic,ttft_s,tpot_s
Qwen/Qwen3-32B,nvidia-h100-sxm-80gb,2,vllm,1155,211,16,mean,0.31,0.0262
"""


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN_PAGES)
def test_a_page_runs_from_top_to_bottom(page: str, service: str, tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "guidellm" / "rate.json", tmp_path / "guidellm.json")
    shutil.copy(SAMPLES / "vllm_bench" / "default.json", tmp_path / "vllm.json")
    (tmp_path / "own.csv").write_text(OWN_ROWS)
    script = "set -euo pipefail\n" + script_of(page).replace("http://127.0.0.1:8000", service)
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ROOFCAST_HOME": str(tmp_path / "home"),
    }
    result = subprocess.run(  # noqa: S603
        ["/bin/bash", "-c", script], cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert '"type":"urn:roofcast:problem' not in result.stdout
