"""Generated modules of `roofcast.client`: ``python -m codegen.client`` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from codegen.blocking_client import blocking_source
from codegen.client_types import type_modules

FOLDER: Final = Path(__file__).parents[1] / "roofcast" / "client"
"""Not imported: the package cannot be imported while it lacks a type."""


def generate_modules(document: dict[str, Any]) -> dict[str, str]:
    """Return the sources of the generated modules by file name."""
    source = (FOLDER / "asynchronous.py").read_text(encoding="utf-8")
    return {**type_modules(document), "blocking.py": blocking_source(source)}


if __name__ == "__main__":
    from roofcast.serving.http.app import create_app

    for name, text in generate_modules(create_app().openapi()).items():
        (FOLDER / name).write_text(text, encoding="utf-8")
