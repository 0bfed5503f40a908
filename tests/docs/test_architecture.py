"""The tree in ARCHITECTURE.md equals that of the folders."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOTS = ("data", "features", "training", "serving")


def documented_rooms() -> set[str]:
    """Return the paths of the tree: a name is in the folder of the last line with less indentation."""
    tree = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Rooms")[2].split("```")[1]
    rooms: set[str] = set()
    parents: dict[int, str] = {}
    for line in filter(None, tree.splitlines()):
        depth = len(line) - len(line.lstrip())
        names = re.split(r"\s{2,}", line.strip())[0].split()
        above = next((parents[d] for d in sorted(parents, reverse=True) if d < depth), "")
        paths = [above + name for name in names]
        rooms.update(path.rstrip("/") for path in paths)
        parents = {d: path for d, path in parents.items() if d < depth} | {depth: paths[0]}
    return rooms


def test_the_tree_lists_all_packages_and_nothing_else() -> None:
    files = (
        file for root in ROOTS for kind in ("__init__.py", "*.js", "*.css") for file in (ROOT / root).rglob(kind)
    )
    packages = {str(file.parent.relative_to(ROOT)) for file in files}
    assert documented_rooms() == packages


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
