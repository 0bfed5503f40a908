"""Fitted folds on disk, so that an interrupted retraining does not fit them again.

A fold is stored as a bundle is: JSON, arrays and XGBoost's UBJSON, from which reading runs no code. Its name is a
digest of all that it depends on, so that a fold of other measurements, settings, code or libraries is never read. Its
signature covers name and content: folds decide which candidate is promoted, so those of anybody else are not read.
"""

import contextlib
import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from roofcast.data.errors import InputError, NotReadyError
from roofcast.features.engine.coefficients import Coefficients, OwnerOffsets
from roofcast.training.cluster import environment
from roofcast.training.config import TrainingConfig
from roofcast.training.learner.boosted_trees import ResidualRegressor, SupportGate
from roofcast.training.learner.ratio_model import FOLD_STORE, FoldRows, HeldOutModel, RatioModel
from roofcast.training.lifecycle.bundles import bundle
from roofcast.training.lifecycle.bundles.bundle_file import BundleFile, Classes, stored_fields, write_object
from roofcast.training.lifecycle.bundles.bundle_key import BundleKey

logger = logging.getLogger(__name__)

CLASSES: Final[Classes] = {
    cls: stored_fields(cls) for cls in (Coefficients, HeldOutModel, OwnerOffsets, SupportGate, TrainingConfig)
} | {
    RatioModel: (
        "config", "metrics", "coefficients", "coefficients_", "owner_offsets_", "metrics_", "regressors_", "gates_",
    ),
    ResidualRegressor: bundle.CLASSES[ResidualRegressor],
}  # fmt: skip
"""Classes of a stored fold, each with its stored attributes."""


@contextlib.contextmanager
def keep_folds(folder: Path, key: BundleKey) -> Iterator[None]:
    """Store the folds that trainings in the block fit in a folder, and read those that it has already."""
    token = FOLD_STORE.set(StoredFolds(folder, key))
    try:
        yield
    finally:
        FOLD_STORE.reset(token)


class StoredFolds:
    """Fitted folds of one retraining."""

    def __init__(self, folder: Path, key: BundleKey) -> None:
        self._folder = folder
        self._key = key

    def resume(
        self,
        predictor: RatioModel,
        tables: Mapping[str, pd.DataFrame | pd.Series | None],
        folds: Sequence[FoldRows],
        fit: Callable[[Sequence[FoldRows]], Iterable[HeldOutModel | None]],
    ) -> Iterator[HeldOutModel | None]:
        """Yield the fitted folds in order: those of the folder, and the others as they are fitted and stored."""
        common = digest_of(predictor, tables)
        files = [self._folder / f"{_fold_digest(common, fold)}.fold" for fold in folds]
        stored = [self._load(file) for file in files]
        missing = [fold for fold, known in zip(folds, stored, strict=True) if known is None]
        if len(missing) < len(folds):
            logger.info("retraining resumes n_fold=%d n_stored=%d", len(folds), len(folds) - len(missing))
        fitted = iter(fit(missing))
        for file, known in zip(files, stored, strict=True):
            result = known or next(fitted)
            if result and not known:
                self._save(file, result)
            yield result

    def _load(self, file: Path) -> HeldOutModel | None:
        try:
            content = file.read_bytes()
            if not self._key.has_signed(_signed_text(file, content), _signature_file(file).read_text("ascii")):
                raise InputError("fold", f"{file.name} is not signed by this state folder")
            fold = BundleFile.parse(content, file.name).decode(CLASSES)
        except FileNotFoundError:
            return None
        except (NotReadyError, InputError, OSError, UnicodeError) as error:
            logger.warning("a stored fold cannot be read; it is fitted again: %s", error)
            return None
        return fold if isinstance(fold, HeldOutModel) else None

    def _save(self, file: Path, fold: HeldOutModel) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_object(file, fold, CLASSES, {})
            _signature_file(file).write_text(self._key.sign(_signed_text(file, file.read_bytes())), encoding="ascii")
        except (NotReadyError, OSError) as error:
            logger.warning("a fold is not stored; an interruption would fit it again: %s", error)


def _signature_file(file: Path) -> Path:
    return file.with_suffix(".signature")


def _signed_text(file: Path, content: bytes) -> str:
    return f"{file.name} {hashlib.sha256(content).hexdigest()}"


def digest_of(predictor: RatioModel, tables: Mapping[str, pd.DataFrame | pd.Series | None]) -> str:
    """Return a digest of libraries, code, settings and tables of a fit."""
    digest = hashlib.blake2b(digest_size=16)
    config, given = predictor.config or TrainingConfig(), predictor.coefficients
    coefficients = [given.typical.tolist(), given.offset.tolist()] if given else []
    settings = [config.model_dump(mode="json"), list(predictor.metrics), coefficients]
    digest.update(json.dumps([environment(), settings], sort_keys=True).encode())
    for name, table in tables.items():
        digest.update(f"\0{name}\0".encode())
        if table is not None:
            _update(digest, table.to_frame("") if isinstance(table, pd.Series) else table)
    return digest.hexdigest()


def _update(digest: Any, table: pd.DataFrame) -> None:
    for name, column in [("index", table.index.to_series()), *table.items()]:
        cells = column.to_numpy()
        digest.update(f"{name} {column.dtype} {len(cells)}\0".encode())
        is_numeric = cells.dtype != object and cells.dtype.kind in "biuf"
        digest.update(cells.tobytes() if is_numeric else json.dumps([str(cell) for cell in cells]).encode())


def _fold_digest(common: str, fold: FoldRows) -> str:
    digest = hashlib.blake2b(common.encode(), digest_size=16)
    for rows in (fold.rows, fold.test):
        digest.update(len(rows).to_bytes(8, "little") + rows.astype("<i8").tobytes())
    return digest.hexdigest()
