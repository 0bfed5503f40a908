"""Execute notebooks in place; they hold nothing that differs between runs but their results.

``python -m tests.notebooks.execution notebooks/*.ipynb``
"""

import base64
import io
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

TIMEOUT_S = 900
N_COLOUR = 96
"""Colours of a stored figure: a palette makes it a third as large."""
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


def compress_figures(notebook: Any) -> Any:
    """Return the notebook with figures of a palette of `N_COLOUR` colours."""
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        if "image/png" in (data := output.get("data", {})):
            image = Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).convert("RGB")
            file = io.BytesIO()
            image.quantize(N_COLOUR, dither=Image.Dither.NONE).save(file, "png", optimize=True)
            data["image/png"] = base64.b64encode(file.getvalue()).decode()
    return notebook


def main(paths: list[str]) -> None:
    """Execute each notebook and write it back."""
    for path in map(Path, paths):
        nbformat.write(compress_figures(execute_notebook(path)), path)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main(sys.argv[1:])
