"""The site builds without a warning, has every page, and fetches nothing from elsewhere."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codegen.command_reference import command_reference
from codegen.docs_tables import TABLES, with_tables
from tests.docs.pages import ROOT

CONFIGURATION = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]


def navigation(entries: list[dict[str, Any]]) -> Iterator[str]:
    for entry in entries:
        for target in entry.values():
            yield from [target] if isinstance(target, str) else navigation(target)


def test_every_page_is_in_the_navigation() -> None:
    pages = {str(file.relative_to(ROOT / "docs")) for file in (ROOT / "docs").rglob("*.md")}
    listed = set(navigation(CONFIGURATION["nav"]))
    assert listed - {"reference/commands.md"} <= pages
    assert {page for page in pages - listed if not page.startswith("decisions/0")} == set()


def test_the_decisions_are_listed() -> None:
    index = (ROOT / "docs" / "decisions" / "index.md").read_text(encoding="utf-8")
    assert with_tables(index, {"decisions": TABLES["decisions"]}) == index, "run `make reference`"


def test_the_published_figures_are_those_of_the_scoreboard() -> None:
    page = (ROOT / "docs" / "explanation" / "figures.md").read_text(encoding="utf-8")
    tables = {name: TABLES[name] for name in ("peers", "held out")}
    assert all(f"<!-- {name} -->" in page for name in tables)
    assert with_tables(page, tables) == page, "run `make reference`"


def test_every_command_is_in_the_reference() -> None:
    text = command_reference()
    for heading in ("## roofcast recommend", "## roofcast keys create", "## roofcast runs"):
        assert f"{heading}\n" in text
    assert "| `--n-input-token`, `--isl` | Mean input tokens; 4k is 4,000. |  |" in text


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    (tmp_path / "docs/reference/commands.md").write_text(command_reference(), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    result = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)  # noqa: S603
    assert result.returncode == 0, result.stdout[-2000:]
    built = list((tmp_path / CONFIGURATION["site_dir"]).rglob("*.html"))
    assert built
    for page in built:
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r"<(?:script|img|iframe|link)[^>]+(?:src|href)=\"?(?:https?:)?//[^\s>]+", text), (
            page.name
        )
