"""Tables of facts that importers read: ``NAME.toml`` beside them."""

import functools
import tomllib
from importlib import resources
from typing import Any


@functools.cache
def fact_table(name: str) -> dict[str, Any]:
    """Return ``NAME.toml`` of this package."""
    return tomllib.loads((resources.files(__package__) / f"{name}.toml").read_text(encoding="utf-8"))
