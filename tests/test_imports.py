"""Every module can be the first that is imported: no cycle works only in the order of some command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

CODE = """
import importlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
for path in sorted((root / "roofcast").rglob("*.py")):
    for loaded in [name for name in sys.modules if name.startswith("roofcast")]:
        del sys.modules[loaded]
    name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(name, error)
"""


@pytest.mark.parametrize(
    "root", ["features", *(pytest.param(root, marks=pytest.mark.slow) for root in ("data", "training"))]
)
def test_every_module_can_be_imported_first(root: str) -> None:
    command = [sys.executable, "-c", CODE, str(ROOT / root)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))  # noqa: S603

    assert done.stdout == ""
