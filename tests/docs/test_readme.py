from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.cli.app import app
from roofcast.serving.http.app import create_app
from tests.serving.http_client import Client, running

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def client(trained_home: Path) -> Iterator[Client]:
    with running(create_app(Settings(home=trained_home))) as opened:
        yield opened


def shape(value: Any) -> Any:
    """Return the structure of a JSON value: names without figures."""
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else type(value).__name__ != "NoneType"


def test_the_answer_has_the_structure_that_the_readme_shows(client: Client) -> None:
    curl = next(block for block in blocks("sh") if "/v1/recommendations" in block)
    request = json.loads(curl.partition("-d '")[2].rpartition("'")[0])
    response = client.post("/v1/recommendations", request)
    assert response.status_code == 200
    shown = json.loads(blocks("json")[0])
    answered = response.json()
    assert list(shown) == list(answered)
    assert shape(shown["entries"][0]["predictions"][0]) == shape(answered["entries"][0]["predictions"][0])
    assert list(shown["entries"][0]) == list(answered["entries"][0])


def test_every_command_and_make_target_exists() -> None:
    commands = {name or "" for name in re.findall(r"^roofcast ([a-z-]+)", "\n".join(blocks("sh")), re.MULTILINE)}
    listed = CliRunner().invoke(app, ["--help"]).output
    assert {"recommend", "predict", "import", "retrain"} <= commands
    assert all(command in listed for command in commands)
    targets = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"serve", "test", "scoreboard"} <= targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_every_link_exists_and_no_figure_is_missing() -> None:
    for document in (README, *((ROOT / name).read_text() for name in ("ARCHITECTURE.md", "CONTRIBUTING.md"))):
        assert "@@" not in document
        for target in re.findall(r"\]\((?!http)([^)#]+)", document):
            assert (ROOT / target).exists(), target
