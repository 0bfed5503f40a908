"""Kinds of bundles: one for each target, with a registered model, champion and history of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, Protocol

from typing_extensions import TypeVar

from roofcast.data.measurements.target import INFERENCE, Target
from roofcast.features.columns import FEATURE_NAMES
from roofcast.training.lifecycle.bundles.bundle import CLASSES, ModelBundle, layout
from roofcast.training.lifecycle.bundles.bundle_file import Classes
from roofcast.training.lifecycle.bundles.bundle_io import read_bundle
from roofcast.training.lifecycle.bundles.tree_check import check_trees


class Bundle(Protocol):
    """A fitted predictor of any target with its metadata: see `ModelBundle`."""

    @property
    def predictor(self) -> Any:
        """The fitted predictor."""

    @property
    def fingerprint(self) -> str:
        """Layout of the version that fitted it."""

    @property
    def roofcast_version(self) -> str:
        """Version that fitted it."""

    @property
    def row_ids(self) -> tuple[str, ...]:
        """Ids of the rows that it was fitted to."""

    @property
    def scores(self) -> dict[str, dict[str, float]]:
        """Held-out errors by metric."""

    def save(self, path: Path) -> str:
        """Write the bundle to a file; return its SHA-256."""


B = TypeVar("B", bound=Bundle, default=ModelBundle)


@dataclass(frozen=True, slots=True)
class BundleKind(Generic[B]):
    """Bundles of one target.

    Parameters
    ----------
    classes
        Classes of a file, each with its stored attributes.
    layout
        Returns a digest of what a file of this version holds; files of another layout are refused.
    n_feature
        Returns the number of features of the trees of a regressor, by its path in the bundle.
    """

    target: Target
    bundle_class: type[B]
    classes: Classes
    layout: Callable[[], str]
    n_feature: Callable[[str], int]

    def name(self, stem: str) -> str:
        """Return a name of what belongs to the target; the inference predictor's has no suffix.

        Examples
        --------
        >>> INFERENCE_BUNDLES.name("champion")
        'champion'
        """
        return stem if self.target == INFERENCE else f"{stem}-{self.target}"

    def load(self, path: Path, expected_sha256: str) -> B:
        """Return the bundle of a file: see `read_bundle`."""
        return read_bundle(path, expected_sha256, self.bundle_class, self.classes, self.layout())

    def check(self, bundle: B, name: str) -> None:
        """Check the trees of a bundle that was downloaded, by the file's name: see `check_trees`."""
        check_trees(bundle, name, self.classes, self.n_feature)


INFERENCE_BUNDLES: Final = BundleKind(INFERENCE, ModelBundle, CLASSES, layout, lambda _: len(FEATURE_NAMES))
