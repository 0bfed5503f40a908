"""The shipped predictor: fitted to the shipped campaigns, stored in the package with fingerprints of data and code.

``python -m roofcast.training.lifecycle.shipped`` fits and stores it, and beside it its held-out errors and the limits
of the quarantine.
"""

from __future__ import annotations

import ast
import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pandas as pd

import roofcast.data
import roofcast.features
import roofcast.training
from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.errors import InputError
from roofcast.data.specs import Spec
from roofcast.training.dataset.training_set import TRAINED_ON, TrainingSet, build_training_set
from roofcast.training.lifecycle.bundles.bundle import ModelBundle, checksum_file, layout, load_bundle
from roofcast.training.lifecycle.held_out_errors import write_held_out_errors
from roofcast.training.lifecycle.registry.registry import SHIPPED, Champion, ShippedPredictor

logger = logging.getLogger(__name__)

FILE: Final = Path(__file__).parents[1] / "shipped" / "predictor.roofcast"
MANIFEST: Final = FILE.with_suffix(".json")

COMMAND: Final = "make predictor"

_FEATURES: Final = ("arrays.py", "columns.py", "descriptors", "engine", "pipeline.py", "validity")

CODE: Final = (
    *((roofcast.features, name) for name in _FEATURES),
    (roofcast.training, "learner"),
    (roofcast.training, "dataset"),
    (roofcast.training, "config.py"),
    (roofcast.training, "explain/contributions.py"),
    (roofcast.training, "evaluation/metrics.py"),
    (roofcast.training, "lifecycle/bundles/bundle.py"),
    (roofcast.training, "lifecycle/bundles/bundle_file.py"),
    (roofcast.training, "lifecycle/retraining.py"),
    (roofcast.data, "measurements"),
    (roofcast.data, "units.py"),
    (roofcast.data, "specs.py"),
)
"""Files and folders of packages whose code changes what is fitted or stored."""


class Manifest(Spec):
    """Identity of the shipped predictor, and fingerprints of the data and code of its fit.

    Parameters
    ----------
    sha256
        Of the file.
    layout
        As `roofcast.training.lifecycle.bundles.bundle.layout`.
    data, catalog, code
        As `data_fingerprint`, `catalog_fingerprint` and `code_fingerprint`.
    """

    sha256: str
    layout: str
    data: str
    catalog: str
    code: str


def read_manifest() -> Manifest:
    """Return the manifest of the shipped predictor."""
    return Manifest.parse(json.loads(MANIFEST.read_text(encoding="utf-8")))


def shipped_predictor() -> ShippedPredictor | None:
    """Return the shipped predictor; None if it is missing or its layout is not the code's."""
    try:
        manifest = read_manifest()
    except (OSError, ValueError, InputError) as error:
        logger.warning("the shipped predictor cannot be used: %s; run `%s`", error, COMMAND)
        return None
    if manifest.layout != layout() or not FILE.is_file():
        logger.warning("the shipped predictor is of another layout than the code; run `%s`", COMMAND)
        return None
    return ShippedPredictor(Champion(f"{SHIPPED}{manifest.sha256[:8]}", "", manifest.sha256), FILE)


def load_shipped() -> ModelBundle | None:
    """Return the bundle of `shipped_predictor`, if there is one."""
    shipped = shipped_predictor()
    return load_bundle(shipped.file, shipped.champion.sha256) if shipped else None


def shipped_training_set() -> TrainingSet:
    """Return the training set of the shipped campaigns."""
    catalog = load_catalog()
    rows = load_campaigns(TRAINED_ON).reset_index(drop=True)
    return build_training_set(rows, catalog.models, catalog.accelerators)


def data_fingerprint() -> str:
    """Return a digest of the rows of the shipped campaigns, independent of their files."""
    return rows_fingerprint(load_campaigns(TRAINED_ON))


def rows_fingerprint(rows: pd.DataFrame) -> str:
    """Return a digest of the names and values of a table."""
    digest = hashlib.blake2b("\n".join(map(str, rows.columns)).encode(), digest_size=8)
    digest.update(pd.util.hash_pandas_object(rows, index=False).to_numpy().tobytes())
    return digest.hexdigest()


def catalog_fingerprint(catalog: Catalog | None = None) -> str:
    """Return a digest of a catalogue's models and accelerators; prices are not learnt from."""
    catalog = catalog or load_catalog()
    specs = [*catalog.models.values(), *catalog.accelerators.values()]
    return hashlib.blake2b("\n".join(spec.model_dump_json() for spec in specs).encode(), digest_size=8).hexdigest()


def code_fingerprint(code: Sequence[tuple[ModuleType, str]] = CODE) -> str:
    """Return a digest of the syntax trees of `code`, which comments, docstrings and formatting do not change."""
    digest = hashlib.blake2b(digest_size=8)
    for package, name in code:
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


def build() -> Manifest:
    """Fit the predictor to the shipped campaigns and store it in the source tree; return its manifest."""
    from roofcast.training.lifecycle.limits_manifest import store_shipped_limits  # noqa: PLC0415  (imports this module)
    from roofcast.training.lifecycle.retraining import fit_bundle  # noqa: PLC0415  (it too)

    data = shipped_training_set()
    bundle = fit_bundle(data)
    FILE.parent.mkdir(exist_ok=True)
    checksum = bundle.save(FILE)
    write_held_out_errors(bundle.predictor, data.y)
    store_shipped_limits()
    checksum_file(FILE).unlink()
    manifest = Manifest(
        sha256=checksum,
        layout=layout(),
        data=data_fingerprint(),
        catalog=catalog_fingerprint(),
        code=code_fingerprint(),
    )
    MANIFEST.write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return manifest


if __name__ == "__main__":
    print(build().model_dump_json())
