"""ARCHITECTURE.md names modules that exist; each package says what it is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOTS = ("data", "features", "training", "serving")


def test_each_package_says_what_it_is() -> None:
    packages = [file for root in ROOTS for file in (ROOT / root / "roofcast").rglob("__init__.py")]
    assert not [
        str(file.parent.relative_to(ROOT)) for file in packages if not ast.get_docstring(ast.parse(file.read_text()))
    ]


def test_each_feature_has_a_module_that_exists_and_holds_the_names() -> None:
    table = (
        (ROOT / "ARCHITECTURE.md")
        .read_text(encoding="utf-8")
        .partition("## Where a feature is")[2]
        .partition("##")[0]
    )
    modules = re.findall(r"`((?:data|features|training|serving)/[\w/]+\.\w+)`(?: \(`(\w+)`\))?", table)
    assert len(modules) >= table.count("\n| ") - 2
    for path, name in modules:
        root, _, rest = path.partition("/")
        text = (ROOT / root / "roofcast" / root / rest).read_text(encoding="utf-8")
        assert re.search(rf"\b{name}\b", text), path
