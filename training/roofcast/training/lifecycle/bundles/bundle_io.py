"""Bundles: fitted predictors with their metadata as files with a checksum, read without running code of the file."""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from roofcast.data.errors import InputError
from roofcast.data.measurements.target import INFERENCE, Target
from roofcast.training.lifecycle.bundles.bundle_file import BundleFile, Classes, write_object

FILE_NAME: Final = "bundle.roofcast"

MAX_FILE_BYTE: Final = 512 * 2**20


def checksum_file(path: Path) -> Path:
    """Return the file of a bundle's SHA-256, beside the bundle.

    Examples
    --------
    >>> checksum_file(Path("predictor.roofcast")).name
    'predictor.roofcast.sha256'
    """
    return path.with_name(f"{path.name}.sha256")


def sha256(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Bundle(ABC):
    """A fitted predictor with its metadata: one class for each target, which has a registered model of its own.

    - `fingerprint`: `layout` of the version that fitted it.
    - `data_digest`, `row_ids`: Of the measurements it was fitted to.
    - `scores`: Held-out errors by metric.
    """

    target: ClassVar[Target]
    classes: ClassVar[Classes]
    """Classes of a file, each with its stored attributes."""

    predictor: Any
    fingerprint: str
    data_digest: str
    row_ids: tuple[str, ...]
    scores: dict[str, dict[str, float]]
    roofcast_version: str = field(default_factory=lambda: version("roofcast"), kw_only=True)

    @classmethod
    @abstractmethod
    def layout(cls) -> str:
        """Return a digest of what a file of this version holds; files of another layout are refused."""

    @staticmethod
    @abstractmethod
    def n_feature(path: str) -> int:
        """Return the number of features of the trees of a regressor, by its path in the bundle."""

    @classmethod
    def name(cls, stem: str) -> str:
        """Return a name of what belongs to the target; the inference predictor's has no suffix."""
        return stem if cls.target == INFERENCE else f"{stem}-{cls.target}"

    def save(self, path: Path) -> str:
        """Write the bundle to a file, and its SHA-256 into `checksum_file`; return the SHA-256."""
        about = {"layout": self.fingerprint, "roofcast": self.roofcast_version}
        write_object(path, self, self.classes, about)
        checksum = sha256(path)
        checksum_file(path).write_text(checksum, encoding="ascii")
        return checksum

    @classmethod
    def load(cls, path: Path, expected_sha256: str) -> Self:
        """Return the bundle of a file.

        Raises `InputError` if the file is missing, its checksum is not the expected one, it is damaged or no bundle,
        or another version of roofcast with other columns wrote it.
        """
        if not path.is_file():
            raise InputError("bundle", f"no file {path.name}; retrain to make one")
        if path.stat().st_size > MAX_FILE_BYTE:
            raise InputError("bundle", f"{path.name} is larger than {MAX_FILE_BYTE:,} bytes; it is no bundle")
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != expected_sha256:
            raise InputError("bundle", f"{path.name} does not have the registered checksum; it was cut or replaced")
        file = BundleFile.parse(content, path.name)
        layout, expected = file.about.get("layout"), cls.layout()
        if layout != expected:
            made = f"{path.name} was made by roofcast {file.about.get('roofcast')} of layout {layout}"
            raise InputError("bundle", f"{made}, this version has {expected}; retrain")
        bundle = file.decode(cls.classes)
        if not isinstance(bundle, cls):
            raise InputError("bundle", f"{path.name} holds a {type(bundle).__name__}, not a {cls.__name__}")
        return bundle
