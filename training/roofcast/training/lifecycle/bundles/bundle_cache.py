"""Bundles of registered versions in the state folder: downloaded on first use, and stored only if they are sound."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic

from roofcast.data.errors import InputError
from roofcast.training.lifecycle.bundles.bundle_io import FILE_NAME, sha256
from roofcast.training.lifecycle.bundles.bundle_types import B
from roofcast.training.lifecycle.bundles.tree_check import check_trees
from roofcast.training.lifecycle.registry.mlflow_store import import_mlflow, reachable

FILE_MODE: Final = 0o644
"""File mode of a downloaded bundle: a start without the registry refuses bundles that others can write."""


class BundleCache(Generic[B]):
    """Folder of bundles, each named by its SHA-256."""

    def __init__(self, folder: Path, tracking_uri: str, kind: type[B]) -> None:
        self._folder = folder
        self._tracking_uri = tracking_uri
        self._kind = kind

    def file(self, checksum: str) -> Path:
        """Return the path of a bundle, downloaded or not."""
        return self._folder / f"{checksum}.roofcast"

    def load(self, version: str, checksum: str, download_uri: Callable[[str], str]) -> B:
        """Return the bundle of a version; a download is kept in the folder only if it passes `check_trees`.

        Raises `InputError` if the version has no bundle, it is damaged or of another layout, or its trees are out of
        range; `NotReadyError` if the store cannot be reached.
        """
        file = self.file(checksum)
        if file.is_file() and sha256(file) == checksum:
            return self._kind.load(file, checksum)
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            with reachable(self._tracking_uri):
                downloaded = self._download(version, folder, download_uri)
            bundle = self._kind.load(downloaded, checksum)
            check_trees(bundle, downloaded.name)
            downloaded.chmod(FILE_MODE)
            downloaded.replace(file)
        return bundle

    def _download(self, version: str, folder: str, download_uri: Callable[[str], str]) -> Path:
        import_mlflow()
        import mlflow  # noqa: PLC0415  (it takes seconds)
        from mlflow.exceptions import MlflowException  # noqa: PLC0415

        try:
            uri = download_uri(version)
            files = Path(mlflow.artifacts.download_artifacts(uri, dst_path=folder, tracking_uri=self._tracking_uri))
        except (MlflowException, FileNotFoundError) as error:
            if isinstance(error, MlflowException) and error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            problem = f"version {version} has lost its files; promote another one, or retrain"
            raise InputError("bundle", problem) from error
        bundle = next(files.rglob(FILE_NAME), None)
        if bundle is None:
            problem = f"version {version} holds no {FILE_NAME}: an earlier release of roofcast registered it"
            raise InputError("bundle", f"{problem}; retrain")
        return bundle
