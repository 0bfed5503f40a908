"""Signatures of bundles: a service accepts the versions that a holder of its key has trained.

The registry's checksum proves that a bundle is unchanged since it was registered, not who registered it: everybody
who can write to the registry can register a bundle. The signature proves that a holder of the key did.
"""

import hmac
import os
import secrets
from pathlib import Path
from typing import Final

from filelock import FileLock

from roofcast.data.errors import NotReadyError

KEY_NAME: Final = "bundle.key"
MIN_KEY_BYTE: Final = 32


class BundleKey:
    """Key of a state folder, created by the first signature.

    `file`: readable by its owner alone. State folders that share an MLflow server have copies of one key.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def sign(self, checksum: str) -> str:
        """Return the signature of a bundle's SHA-256: HMAC-SHA256, hexadecimal.

        Raises `NotReadyError` if the key cannot be read or created, or is too short.
        """
        if not self.file.exists():
            self._create()
        return hmac.new(self._read(), checksum.encode(), "sha256").hexdigest()

    def has_signed(self, checksum: str, signature: str) -> bool:
        """Return whether a signature was made by this key; False without a key. Writes nothing.

        Raises `NotReadyError` if the key cannot be read or is too short.
        """
        if not signature or not self.file.exists():
            return False
        return hmac.compare_digest(self.sign(checksum).encode(), signature.encode())

    def _create(self) -> None:
        part = self.file.with_name(f"{self.file.name}.part")
        try:
            with FileLock(self.file.with_name(f"{self.file.name}.lock")):
                if self.file.exists():
                    return
                part.unlink(missing_ok=True)
                descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(secrets.token_bytes(MIN_KEY_BYTE))
                part.replace(self.file)
        except OSError as error:
            raise self._unusable(error) from error

    def _read(self) -> bytes:
        try:
            key = self.file.read_bytes()
        except OSError as error:
            raise self._unusable(error) from error
        if len(key) < MIN_KEY_BYTE:
            raise NotReadyError(f"the key {self.file} must have at least {MIN_KEY_BYTE} bytes, got {len(key)}")
        return key

    def _unusable(self, error: OSError) -> NotReadyError:
        return NotReadyError(f"the key {self.file} cannot be used: {error.strerror or error}")
