"""Fingerprints of data and code: whether a stored file still follows from both."""

import ast
import hashlib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from roofcast.data.catalog import Catalog


def rows_fingerprint(rows: pd.DataFrame) -> str:
    """Return a digest of the names and values of a table."""
    digest = hashlib.blake2b("\n".join(map(str, rows.columns)).encode(), digest_size=8)
    digest.update(pd.util.hash_pandas_object(rows, index=False).to_numpy().tobytes())
    return digest.hexdigest()


def catalog_fingerprint(catalog: Catalog) -> str:
    """Return a digest of a catalogue's models and accelerators; prices are not learnt from."""
    specs = [*catalog.models.values(), *catalog.accelerators.values()]
    return hashlib.blake2b("\n".join(spec.model_dump_json() for spec in specs).encode(), digest_size=8).hexdigest()


def code_fingerprint(paths: Sequence[str]) -> str:
    """Return a digest of the syntax trees of files, which comments, docstrings and formatting do not change.

    `paths`: of files and folders in the namespace, such as ``data/units.py``.
    """
    digest = hashlib.blake2b(digest_size=8)
    for path in paths:
        package_name, _, name = path.partition("/")
        package = import_module(f"roofcast.{package_name}")
        root = Path(package.__path__[0], name)
        for file in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
            digest.update(f"{package.__name__}/{file.relative_to(package.__path__[0]).as_posix()}\n".encode())
            digest.update(syntax(file.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()


def syntax(source: str) -> str:
    r"""Return the syntax tree of Python code as text, without docstrings and other bare strings.

    The text is the same in all versions of Python: unlike `ast.dump`, it leaves out empty fields, which versions add.

    Examples
    --------
    >>> syntax('def f(x):\n    "Doc."\n    return x  # why') == syntax("def f(x): return x")
    True
    """
    return _dump(ast.parse(source))


def _dump(value: Any) -> str:
    if isinstance(value, list):
        return f"[{' '.join(_dump(item) for item in value if not _is_text(item))}]"
    if not isinstance(value, ast.AST):
        return repr(value)
    items = ((name, _dump(item)) for name, item in ast.iter_fields(value) if item is not None)
    fields = sorted(f"{name}={text}" for name, text in items if text != "[]")
    return f"{type(value).__name__}({' '.join(fields)})"


def _is_text(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
