"""Rules of the code base that no linter checks."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOTS = ("data", "features", "training", "serving")
MAX_FILE_LINE = 450
MAX_FUNCTION_LINE = 60


NOUNS = {
    "blocking", "load_shedding", "p6_jobs", "retraining", "root_finding", "scoreboard_training", "sqlite_listing",
    "streaming", "tracing", "tracking", "training",
}  # fmt: skip
"""Names in -ing that the field uses as nouns or adjectives."""
BANNED_PHRASES = (
    "tells of", "told of", "stands for", "anew", "of which there is", "in vain", "by whoever", "that of whoever",
)  # fmt: skip


def modules() -> list[Path]:
    """Return the modules of the wheel, without those of the client that its build writes."""
    files = sorted(path for root in ROOTS for path in (ROOT / root / "roofcast").rglob("*.py"))
    return [path for path in files if "; built by codegen" not in path.read_text(encoding="utf-8").partition("\n")[0]]


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    has_docstring = ast.get_docstring(function) is not None and len(function.body) > 1
    first = function.body[1] if has_docstring else function.body[0]
    return (function.end_lineno or first.lineno) - first.lineno + 1


@pytest.mark.parametrize("root", ROOTS)
def test_the_namespace_has_no_init_file(root: str) -> None:
    assert not (ROOT / root / "roofcast" / "__init__.py").exists()


def test_files_and_functions_are_small() -> None:
    every_file = [*modules(), *sorted((ROOT / "tests").rglob("*.py"))]
    long_files = {
        str(p.relative_to(ROOT)): n for p in every_file if (n := len(p.read_text().splitlines())) > MAX_FILE_LINE
    }
    assert not long_files
    long_functions = {
        f"{path.relative_to(ROOT)}:{function.name}": n
        for path in modules()
        for function in functions(path)
        if (n := body_lines(function)) > MAX_FUNCTION_LINE
    }
    assert not long_functions


def test_no_module_has_a_vague_name() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert not [path for path in modules() if path.stem in vague]


def test_no_module_is_named_by_a_gerund() -> None:
    gerunds = [path for path in modules() if path.stem.endswith("ing")]
    assert not [str(p.relative_to(ROOT)) for p in gerunds if p.stem not in NOUNS]


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield " ".join(node.value.value.split())


def test_docstrings_are_plain() -> None:
    violations = {
        str(path.relative_to(ROOT))
        for path in modules()
        if any(phrase in text for text in docstrings(path) for phrase in BANNED_PHRASES)
    }
    assert not sorted(violations)


def test_no_module_raises_http_exceptions() -> None:
    violations = {p.name for p in modules() if "raise HTTPException" in p.read_text()}
    assert not violations


def test_conversion_factors_are_in_units_alone() -> None:
    factor = re.compile(r"[*/] ?(?:1e-?3|1000(?:\.0)?|1e-?6|1e9|1e12|3600(?:\.0)?|1024)\b")
    violations = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in modules()
        if path.name != "units.py"
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if factor.search(line) and ">>>" not in line
    ]
    assert not violations


def test_tracked_files_name_neither_machines_nor_package_indexes() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S607
    if listed.returncode:
        pytest.skip("not a git checkout")
    pattern = re.compile(r"(?:^|[\s\"'=(])/(?:root|work|home/\w+|tmp/\w+)/|pypi\.org|pythonhosted")
    violations = []
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".txt", ".ipynb", ".yaml", ""} and path.is_file():
            violations += [
                name
                for line in path.read_text(encoding="utf-8", errors="ignore").splitlines()
                if pattern.search(line)
            ]
    assert sorted(set(violations) - {"tests/test_house.py"}) == []
