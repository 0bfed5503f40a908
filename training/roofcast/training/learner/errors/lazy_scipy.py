"""Modules of SciPy that are imported by their first call: serving answers most queries without them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy import linalg, optimize, sparse, special
else:

    class _LazyModule:
        def __init__(self, name: str) -> None:
            self.__name__ = name

        def __getattr__(self, attribute: str) -> Any:
            return getattr(import_module(self.__name__), attribute)

    linalg, optimize, sparse, special = (
        _LazyModule(f"scipy.{name}") for name in ("linalg", "optimize", "sparse", "special")
    )

__all__ = ["linalg", "optimize", "sparse", "special"]
