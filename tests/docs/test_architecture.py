"""ARCHITECTURE.md names modules that exist; each package says what it is."""

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


def test_each_module_that_is_named_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:data|features|training|serving)/[\w/]+\.\w+)`", text)
    folders = {root: (ROOT / root, ROOT / root / "roofcast" / root) for root in ROOTS}
    missing = []
    for path in named:
        root, _, rest = path.partition("/")
        missing += [path] * (not any((folder / rest).is_file() for folder in folders[root]))
    assert missing == []
