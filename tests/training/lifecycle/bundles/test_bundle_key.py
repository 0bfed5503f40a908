from collections.abc import Callable
from pathlib import Path

import pytest

from roofcast.data.errors import NotReadyError
from roofcast.training.lifecycle.bundles import bundle_key
from roofcast.training.lifecycle.bundles.bundle_key import BundleKey

CHECKSUM = "ab" * 32


def test_a_key_is_created_once_for_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "bundle.key"
    signature = BundleKey(file).sign(CHECKSUM)
    assert BundleKey(file).sign(CHECKSUM) == signature
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("signature", ["", "0" * 64, "ä"])
def test_a_signature_of_nobody_is_refused(signature: str, tmp_path: Path) -> None:
    key = BundleKey(tmp_path / "bundle.key")
    own = key.sign(CHECKSUM)
    assert key.has_signed(CHECKSUM, own)
    assert not key.has_signed(CHECKSUM, signature)
    assert not key.has_signed("cd" * 32, own)


def test_a_key_that_does_not_exist_has_signed_nothing(tmp_path: Path) -> None:
    signature = BundleKey(tmp_path / "other.key").sign(CHECKSUM)
    key = BundleKey(tmp_path / "bundle.key")
    assert not key.has_signed(CHECKSUM, signature)
    assert not key.file.exists()


def test_a_key_in_a_read_only_folder_verifies_and_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = BundleKey(tmp_path / "bundle.key")
    own = key.sign(CHECKSUM)
    (tmp_path / "bundle.key.lock").unlink(missing_ok=True)
    monkeypatch.setattr(bundle_key, "FileLock", None)
    assert key.has_signed(CHECKSUM, own)
    assert key.sign(CHECKSUM) == own
    assert [file.name for file in tmp_path.iterdir()] == ["bundle.key"]


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [(lambda file: file.write_bytes(b"short"), "at least 32 bytes, got 5"), (Path.mkdir, "cannot be used")],
)
def test_a_short_or_unreadable_key_is_refused(spoil: Callable[[Path], object], problem: str, tmp_path: Path) -> None:
    spoil(tmp_path / "bundle.key")
    with pytest.raises(NotReadyError, match=problem):
        BundleKey(tmp_path / "bundle.key").sign(CHECKSUM)
