"""Kinds of bundles: one for each target, with a registered model, champion and history of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic

from typing_extensions import TypeVar

from roofcast.data.measurements.target import INFERENCE, Target
from roofcast.training.lifecycle.bundles.bundle import ModelBundle, load_bundle
from roofcast.training.lifecycle.bundles.tree_check import check_trees

B = TypeVar("B", default=ModelBundle)


@dataclass(frozen=True, slots=True)
class BundleKind(Generic[B]):
    """Bundles of one target.

    Parameters
    ----------
    load
        Returns the bundle of a file with an expected SHA-256.
    check
        Checks the trees of a bundle that was downloaded, by the file's name.
    """

    target: Target
    load: Callable[[Path, str], B]
    check: Callable[[B, str], None]

    def name(self, stem: str) -> str:
        """Return a name of what belongs to the target; the inference predictor's has no suffix.

        Examples
        --------
        >>> INFERENCE_BUNDLES.name("champion")
        'champion'
        """
        return stem if self.target == INFERENCE else f"{stem}-{self.target}"


INFERENCE_BUNDLES: Final = BundleKind(INFERENCE, load_bundle, check_trees)
