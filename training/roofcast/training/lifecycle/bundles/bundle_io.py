"""Files of bundles: written with a checksum beside, and read without running code of the file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, TypeVar

from roofcast.data.errors import InputError
from roofcast.training.lifecycle.bundles.bundle_file import BundleFile, Classes, write_object

FILE_NAME: Final = "bundle.roofcast"

MAX_FILE_BYTE: Final = 512 * 2**20

BundleT = TypeVar("BundleT")


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


def write_bundle(path: Path, bundle: object, classes: Classes, layout: str, roofcast: str) -> str:
    """Write a bundle for `read_bundle`, and its SHA-256 into `checksum_file`; return the SHA-256.

    Parameters
    ----------
    layout, roofcast
        Layout and version of roofcast that fitted the bundle.
    """
    write_object(path, bundle, classes, {"layout": layout, "roofcast": roofcast})
    checksum = sha256(path)
    checksum_file(path).write_text(checksum, encoding="ascii")
    return checksum


def read_bundle(
    path: Path, expected_sha256: str, kind: type[BundleT], classes: Classes, expected_layout: str
) -> BundleT:
    """Return the bundle of a file; loading runs no code from the file.

    Parameters
    ----------
    kind, classes, expected_layout
        Class of the bundle, its registered classes, and the layout that this version reads.

    Raises
    ------
    InputError
        If the file is missing, its checksum is not the expected one, it is damaged or no bundle, or another version
        of roofcast with other columns wrote it.
    """
    if not path.is_file():
        raise InputError("bundle", f"no file {path.name}; retrain to make one")
    if path.stat().st_size > MAX_FILE_BYTE:
        raise InputError("bundle", f"{path.name} is larger than {MAX_FILE_BYTE:,} bytes; it is no bundle")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != expected_sha256:
        raise InputError("bundle", f"{path.name} does not have the registered checksum; it was cut or replaced")
    file = BundleFile.parse(content, path.name)
    if file.about.get("layout") != expected_layout:
        raise InputError(
            "bundle",
            f"{path.name} was made by roofcast {file.about.get('roofcast')} of layout {file.about.get('layout')}, "
            f"this version has {expected_layout}; retrain",
        )
    bundle = file.decode(classes)
    if not isinstance(bundle, kind):
        raise InputError("bundle", f"{path.name} holds a {type(bundle).__name__}, not a {kind.__name__}")
    return bundle
