"""Every notebook runs in a clean kernel, defines nothing, and is committed as executed."""

import ast
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.notebooks.execution import METADATA, execute_notebook, read_notebook

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
PAGE = ROOT / "docs" / "explanation" / "notebooks.md"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MAX_BYTE = 400_000
MIN_ASSERT = 6
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
MACHINE_PATHS = (str(Path.home()) + "/", str(FOLDER.parent) + "/", "/site-packages/", "/home/", "/Users/", "/tmp/")  # noqa: S108

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def noise(notebook: Any) -> list[Any]:
    """Return errors and outputs to the standard streams, such as warnings and progress."""
    return [output for output in outputs(notebook) if output.output_type in {"error", "stream"}]


def test_the_page_lists_every_notebook_and_no_other() -> None:
    listed = re.findall(r"`notebooks/(\w+)\.ipynb`", PAGE.read_text(encoding="utf-8"))
    assert listed == [path.stem for path in NOTEBOOKS]
    assert PAGE.name in (ROOT / "zensical.toml").read_text(encoding="utf-8")


@every_notebook
def test_it_asserts_what_its_text_says(path: Path) -> None:
    asserts = [
        node
        for cell in code_cells(read_notebook(path))
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Assert)
    ]
    assert len(asserts) >= MIN_ASSERT


@pytest.mark.slow
@every_notebook
def test_it_runs_in_a_clean_kernel_without_output_to_the_streams(path: Path) -> None:
    assert noise(execute_notebook(path)) == []


@every_notebook
def test_it_defines_nothing(path: Path) -> None:
    for cell in code_cells(read_notebook(path)):
        defined = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, DEFINITIONS)]
        assert defined == [], f"move this into the package, where it is tested: {cell.source}"


@every_notebook
def test_it_is_committed_as_executed_in_order_with_its_figures(path: Path) -> None:
    notebook = read_notebook(path)
    nbformat.validate(notebook)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert noise(notebook) == []
    assert any("image/png" in output.get("data", {}) for output in outputs(notebook))
    assert path.stat().st_size < MAX_BYTE


@every_notebook
def test_it_names_nothing_of_the_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [path_ for path_ in MACHINE_PATHS if path_ in text] == []
    notebook = read_notebook(path)
    assert notebook.metadata == METADATA, "write it with python -m tests.notebooks.execution"
    assert [cell for cell in notebook.cells if "execution" in cell.metadata] == [], (
        "time stamps change with every run"
    )
