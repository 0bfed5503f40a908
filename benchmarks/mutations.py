"""Mutations of single lines, chosen by a seed, and the tests that notice them.

``python -m benchmarks.mutations --n 60 --seed 1`` changes one line of the wheel at a time (a comparison, an operator,
a constant, a condition, a statement), and runs the tests of the module's name, then those that import it, then all of
its room, until one fails. It restores each file. The last line is JSON with the survivors. It refuses changed files.
"""

import argparse
import ast
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
ROOTS: Final = ("data", "features", "training", "serving")
LIMIT_S: Final = 900

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult,
}  # fmt: skip


class Mutant(NamedTuple):
    """A file, the number of its line, the line before and after, and the whole text after."""

    file: Path
    line: int
    before: str
    after: str
    text: str


def mutants_of(file: Path, rng: random.Random) -> Iterator[Mutant]:
    """Yield a mutant of each line of code that can be changed, the change chosen at random."""
    text = file.read_text(encoding="utf-8")
    lines = text.split("\n")
    changes: dict[int, list[tuple[ast.AST, str]]] = {}
    for node in _code_nodes(ast.parse(text)):
        if getattr(node, "lineno", 0) == getattr(node, "end_lineno", None):
            changes.setdefault(node.lineno, []).extend((node, new) for new in _changes(node))  # type: ignore[attr-defined]
    for number, options in changes.items():
        if not options:
            continue
        node, new = rng.choice(options)
        before = lines[number - 1]
        raw = before.encode()
        after = (raw[: node.col_offset] + new.encode() + raw[node.end_col_offset :]).decode()  # type: ignore[attr-defined]
        changed = "\n".join([*lines[: number - 1], after, *lines[number:]])
        if after != before and _parses(changed):
            yield Mutant(file, number, before.strip(), after.strip(), changed)


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _code_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield nodes of function bodies and module constants; no annotations, docstrings, logs or imports."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(
            ("logger.", "warnings.", "typer.", "Field")
        ):
            continue
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from _code_nodes(ast.Module([ast.Expr(node.value)], []))
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _code_nodes(ast.Module(list(node.body), []))
            continue
        yield node
        yield from _code_nodes(node)


def _changes(node: ast.AST) -> list[str]:  # noqa: PLR0911  (one kind of node a line)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        return [_unparse(ast.Compare(node.left, [COMPARISONS[type(node.ops[0])](), *node.ops[1:]], node.comparators))]
    if (
        isinstance(node, ast.BinOp)
        and type(node.op) in OPERATORS
        and not isinstance(node.left, ast.Constant | ast.JoinedStr)
    ):
        return [_unparse(ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right))]
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return [_unparse(ast.BoolOp(other, node.values))]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [_unparse(node.operand)]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return [repr(not node.value)]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return [repr(node.value + 1)]
    if isinstance(node, ast.IfExp):
        return [_unparse(ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse))]
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return ["pass"]
    return []


def _unparse(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"


def suites_of(file: Path) -> list[list[str]]:
    """Return the tests to run, in turn: of the module's name, of its importers, of its room."""
    room = _room(file)
    name = file.stem if file.stem != "__init__" else file.parent.name
    dotted = ".".join(file.relative_to(ROOT).with_suffix("").parts[1:]).removesuffix(".__init__")
    package, _, module = dotted.rpartition(".")
    pattern = re.compile(rf"{re.escape(dotted)}\b|from {re.escape(package)} import [^\n]*\b{re.escape(module)}\b")
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    mirror = [str(file), *(str(test) for test in tests if test.stem == f"test_{name}")]
    importers = [
        str(test) for test in tests if pattern.search(test.read_text(encoding="utf-8")) and str(test) not in mirror
    ]
    return [mirror, importers, [str(room)] if room.is_dir() else []]


def _room(file: Path) -> Path:
    parts = file.relative_to(ROOT).parts
    folder = ROOT / "tests" / Path(*parts[2:-1])
    while not folder.is_dir():
        folder = folder.parent
    return folder


def killed_by(mutant: Mutant) -> str:
    """Return the suite that fails on the mutant, blank if none does."""
    for name, paths in zip(("module", "importers", "room"), suites_of(mutant.file), strict=True):
        if paths and _fails(paths):
            return name
    return ""


def _fails(paths: list[str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *paths]
    deselected = ["--deselect", "tests/training/lifecycle/test_shipped.py", "--deselect", "tests/test_house.py"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        result = subprocess.run(  # noqa: S603
            command + deselected, cwd=ROOT, env=environment, capture_output=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return result.returncode not in {0, 5}


def main() -> None:
    """Try the mutants and print each, then the survivors as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="0/1", help="of the mutants, every n-th from the k-th: k/n")
    options = parser.parse_args()
    command = ["git", "status", "--porcelain", "-uno"]
    changed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    if changed.stdout:
        sys.exit("files are changed: commit or restore them, then run again")
    rng = random.Random(options.seed)  # noqa: S311  (a draw, no secret)
    files = sorted(file for root in ROOTS for file in (ROOT / root / "roofcast").rglob("*.py"))
    mutants = [mutant for file in files for mutant in mutants_of(file, rng)]
    part, n_part = map(int, options.part.split("/"))
    results: list[dict[str, Any]] = []
    for mutant in rng.sample(mutants, options.n)[part::n_part]:
        original = mutant.file.read_text(encoding="utf-8")
        try:
            mutant.file.write_text(mutant.text, encoding="utf-8")
            killer = killed_by(mutant)
        finally:
            mutant.file.write_text(original, encoding="utf-8")
        where = f"{mutant.file.relative_to(ROOT)}:{mutant.line}"
        results.append({"where": where, "before": mutant.before, "after": mutant.after, "killed_by": killer})
        print(f"{killer or 'SURVIVES':10} {where}\n  - {mutant.before}\n  + {mutant.after}", flush=True)
    survivors = [result for result in results if not result["killed_by"]]
    print(json.dumps({"n": len(results), "n_survivor": len(survivors), "survivors": survivors}))


if __name__ == "__main__":
    main()
