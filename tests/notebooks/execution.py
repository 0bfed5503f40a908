"""Execute notebooks in place; they hold nothing that differs between runs but their results.

``python -m tests.notebooks.execution notebooks/*.ipynb``
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

TIMEOUT_S = 900
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def read_notebook(path: Path) -> Any:
    """Return the notebook of a file."""
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def execute_notebook(path: Path) -> Any:
    """Return the notebook with the outputs that a clean kernel gives; a cell that fails raises."""
    notebook = read_notebook(path)
    NotebookClient(
        notebook,
        timeout=TIMEOUT_S,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    notebook.metadata = nbformat.from_dict(METADATA)  # type: ignore[no-untyped-call]
    return notebook


def main(paths: list[str]) -> None:
    """Execute each notebook and write it back."""
    for path in map(Path, paths):
        nbformat.write(execute_notebook(path), path)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main(sys.argv[1:])
