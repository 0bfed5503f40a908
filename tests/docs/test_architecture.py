"""The tree of rooms in ARCHITECTURE.md is that of the folders."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOTS = ("data", "features", "training", "serving")


def documented_rooms() -> set[str]:
    """Return the paths of the tree: an indented name lies in the last line that is indented less."""
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


def test_every_room_is_in_the_tree_and_every_name_in_the_tree_is_a_room() -> None:
    packages = {str(file.parent.relative_to(ROOT)) for root in ROOTS for file in (ROOT / root).rglob("__init__.py")}
    assert documented_rooms() == packages
