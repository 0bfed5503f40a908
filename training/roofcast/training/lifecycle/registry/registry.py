"""Registry of trained bundles: MLflow's model registry, embedded by default.

MLflow is imported on first use, because the import takes seconds and a server with a cached champion needs none.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import contextlib
import functools
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic

from filelock import FileLock, Timeout

from roofcast.data.errors import InputError, NoAnswerError, NotReadyError, UnknownNameError
from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.bundles.bundle_cache import BundleCache
from roofcast.training.lifecycle.bundles.bundle_io import sha256
from roofcast.training.lifecycle.bundles.bundle_key import KEY_NAME, BundleKey
from roofcast.training.lifecycle.bundles.bundle_types import B
from roofcast.training.lifecycle.registry.artifact_paths import relocate
from roofcast.training.lifecycle.registry.beside_sqlite import open_beside_sqlite
from roofcast.training.lifecycle.registry.champion_changes import Action, record_change
from roofcast.training.lifecycle.registry.mlflow_store import create_store, import_mlflow, reachable, set_mlflow_uri

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion
    from mlflow.tracking import MlflowClient

logger = logging.getLogger(__name__)

MODEL_NAME: Final = "roofcast"
EXPERIMENT: Final = "roofcast"
CHAMPION: Final = "champion"
CHALLENGER: Final = "challenger"
"""Aliases of the version in service, and of the one that answers beside it: see `challenger`."""

HISTORY_TAG: Final = "earlier_champions"
"""Tag of the registered model: versions that were champion before, oldest first."""

MAX_EARLIER: Final = 100
"""Most versions in `HISTORY_TAG`; a tag holds a few thousand characters."""

CHECKSUM_TAG: Final = "sha256"
SIGNATURE_TAG: Final = "signature"
RUN_NOTE_TAG: Final = "mlflow.note.content"
"""Tag that MLflow's pages show as the description of a run."""

MAX_DESCRIPTION: Final = 5000
"""Characters that MLflow's store holds of a description."""

NO_EARLIER: Final = (
    "there is no earlier champion to go back to; `roofcast promote VERSION` puts any version in service"
)

PROGRAM: Final = "a program"
"""Default caller in the audit log."""

CHANGE_WAIT_S: Final = 60.0
"""Time that a change of the champion waits for another one, which may be downloading a bundle."""

LOGGED_MODEL: Final = "models:/"
"""Start of the address of a logged model; its id, which starts with ``m-``, follows."""

SHIPPED: Final = "shipped-"
"""Start of the version of a shipped predictor; digits of its SHA-256 follow."""

NO_CHAMPION: Final = "no predictor is promoted yet; run `roofcast retrain` (`--target training` for training jobs)"


@dataclass(frozen=True, slots=True)
class Champion:
    """A registered version, what identifies its bundle with the signature of `BundleKey`, and its description."""

    version: str
    run_id: str
    sha256: str
    signature: str = field(default="", compare=False)
    description: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ShippedPredictor:
    """The predictor of the package: the champion where no version is promoted."""

    champion: Champion
    file: Path


class Registry(Generic[B]):
    """Registered versions of the predictor of a target: the champion and its predecessors.

    Raises `NotReadyError` from every method, if the store cannot be reached.

    - `home`: Folder of the embedded store (an SQLite file and a folder of artefacts) and of fetched bundles.
    - `tracking_uri`: Address of an MLflow server; None for the embedded store.
    - `shipped`: Champion where no version is promoted; `promote` and `rollback` accept it like a registered version.
    - `key_file`: Key that signs the versions registered here, and must have signed those that are loaded; by default
      one of the state folder.
    """

    def __init__(
        self,
        home: Path,
        tracking_uri: str | None = None,
        shipped: ShippedPredictor | None = None,
        key_file: Path | None = None,
        kind: type[Any] = ModelBundle,
    ) -> None:
        self.home = home
        self.kind: type[B] = kind
        self._model_name = kind.name(MODEL_NAME)
        self.key = BundleKey(key_file or home / KEY_NAME)
        self.shipped = shipped
        self.tracking_uri = tracking_uri or f"sqlite:///{home / 'mlflow.db'}"
        self._creating = FileLock(home / "mlflow.lock")
        self._changing = FileLock(home / f"{kind.name('champion')}.lock")
        self._bundles = BundleCache(home / "bundles", self.tracking_uri, self.kind)
        self._artifact_location = None if tracking_uri else (home / "artifacts").as_uri()

    def stamp(self) -> str:
        """Return a value that differs after every change of an embedded store; blank if there is none.

        It is SQLite's change counter in the file header, which is not maintained in WAL mode.

        References
        ----------
        "Database File Format", section 1.3.7, sqlite.org.
        """
        if not self._artifact_location:
            return ""
        try:
            descriptor = open_beside_sqlite(self.home / "mlflow.db")
            header, modified_ns = os.pread(descriptor, 28, 0), os.fstat(descriptor).st_mtime_ns
        except OSError:
            return ""
        return f"{header[24:28].hex()}-{modified_ns}" if header[18:20] == b"\1\1" else ""

    @functools.cached_property
    def _client(self) -> MlflowClient:
        import_mlflow()
        from mlflow.tracking import MlflowClient

        if not self._artifact_location:
            return MlflowClient(tracking_uri=self.tracking_uri, registry_uri=self.tracking_uri)
        with self._creating, reachable(self.tracking_uri):
            file = self.home / "mlflow.db"
            # created with SQLite first: MLflow retries for minutes if that fails
            create_store(file)
            if relocate(file, EXPERIMENT, self._artifact_location):
                logger.warning(
                    "the state folder was copied or moved: its runs now write to %s", self._artifact_location
                )
            client = MlflowClient(tracking_uri=self.tracking_uri, registry_uri=self.tracking_uri)
            client.search_experiments(max_results=1)
            return client

    @contextlib.contextmanager
    def run(self, name: str) -> Iterator[str]:
        """Open an MLflow run in the project's experiment and yield its id."""
        import_mlflow()
        import mlflow

        with reachable(self.tracking_uri):
            set_mlflow_uri(self.tracking_uri)
            experiment_id = self._experiment_id()
        with mlflow.start_run(experiment_id=experiment_id, run_name=name) as active:
            yield active.info.run_id

    def _experiment_id(self) -> str:
        with self._creating:
            experiment = self._client.get_experiment_by_name(EXPERIMENT)
            if experiment:
                return str(experiment.experiment_id)
            return str(self._client.create_experiment(EXPERIMENT, artifact_location=self._artifact_location))

    def _make_registered_model(self) -> None:
        import_mlflow()
        from mlflow.exceptions import MlflowException

        with self._creating:
            try:
                self._client.get_registered_model(self._model_name)
            except MlflowException as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
                self._client.create_registered_model(self._model_name)

    def register(self, model_uri: str, run_id: str, checksum: str) -> str:
        """Register a logged model and return its version; MLflow's server wants the id of one that has an id."""
        model_id = model_uri.removeprefix(LOGGED_MODEL) if model_uri.startswith(f"{LOGGED_MODEL}m-") else None
        with reachable(self.tracking_uri):
            self._make_registered_model()
            version = self._client.create_model_version(
                self._model_name,
                source=model_uri,
                run_id=run_id,
                tags={CHECKSUM_TAG: checksum, SIGNATURE_TAG: self.key.sign(checksum)},
                model_id=model_id,
            )
        return str(version.version)

    def describe(self, version: str, description: str) -> None:
        """Set the description of a registered version, and of its run."""
        description = description[:MAX_DESCRIPTION]
        with reachable(self.tracking_uri):
            entity = self._client.update_model_version(self._model_name, version, description)
            self._client.set_tag(str(entity.run_id), RUN_NOTE_TAG, description)

    @property
    def is_empty(self) -> bool:
        """Whether an embedded store does not exist yet; does not import MLflow."""
        return self._artifact_location is not None and not (self.home / "mlflow.db").exists()

    def champion(self) -> Champion | None:
        """Return the promoted version; the shipped predictor if none is promoted; else None."""
        return self.aliased(CHAMPION) or (self.shipped.champion if self.shipped else None)

    def versions(self) -> list[Champion]:
        """Return all versions, newest first, then the shipped predictor."""
        shipped = [self.shipped.champion] if self.shipped else []
        if self.is_empty:
            return shipped
        with reachable(self.tracking_uri):
            versions = self._client.search_model_versions(f"name = '{self._model_name}'")
        return [*sorted(map(_champion, versions), key=lambda c: int(c.version), reverse=True), *shipped]

    def find(self, version: str) -> Champion:
        """Return a registered version or the shipped predictor.

        Raises `UnknownNameError` if there is no such version.
        """
        known = {champion.version: champion for champion in self.versions()}
        if version not in known:
            raise UnknownNameError("version", version, known)
        return known[version]

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Lock the champion: no other process of this state folder changes it inside the block.

        Raises `NotReadyError` if another change holds the lock for `CHANGE_WAIT_S`.
        """
        try:
            self._changing.acquire(timeout=CHANGE_WAIT_S)
        except Timeout as error:
            raise NotReadyError("another process is changing the champion; try again") from error
        try:
            yield
        finally:
            self._changing.release()

    def promote(self, version: str, by: str = PROGRAM) -> Champion:
        """Make a version the champion; `rollback` returns to the version before.

        Raises `UnknownNameError` if there is no such version.
        """
        with self.changing():
            champion, before = self.find(version), self.champion()
            with reachable(self.tracking_uri):
                if before and before.version != version:
                    self._set_earlier([*self._earlier(), before.version])
                if before != champion or not self.is_shipped(champion):
                    self._set_champion(champion)
            self._record("promotion", by, before, champion)
        return champion

    def previous(self) -> Champion:
        """Return the version that `rollback` would promote; deleted versions are skipped.

        Raises `NoAnswerError` if there is none.
        """
        return self._earlier_champions(self.champion())[-1]

    def rollback(self, expected: Champion | None = None, by: str = PROGRAM) -> Champion:
        """Make the version before the champion the champion; a second call goes back one more.

        `expected`: the champion that the caller wants to replace; None for any. Raises `NoAnswerError` if there is no
        earlier version, or the champion is not the expected one.
        """
        with self.changing():
            champion = self.champion()
            if expected and champion != expected:
                current = f"version {champion.version}" if champion else "none"
                problem = f"the champion must be version {expected.version}, got {current}: it changed meanwhile"
                raise NoAnswerError(f"{problem}; check the versions and try again")
            *earlier, target = self._earlier_champions(champion)
            with reachable(self.tracking_uri):
                self._set_champion(target)
                self._set_earlier([version.version for version in earlier])
            self._record("rollback", by, champion, target)
        return target

    def _record(self, action: Action, by: str, before: Champion | None, champion: Champion) -> None:
        version_before = before.version if before else "none"
        record_change(self.home, action, by, version_before, champion.version, target=self.kind.target)

    def _earlier_champions(self, champion: Champion | None) -> list[Champion]:
        known = {champion.version: champion for champion in self.versions()}
        registered = [champion for champion in known.values() if not self.is_shipped(champion)]
        with reachable(self.tracking_uri):
            versions = self._earlier() if registered else []
        if self.shipped:
            present = self.shipped.champion.version
            versions = [present if version.startswith(SHIPPED) else version for version in versions]
        earlier = [known[version] for version in versions if version in known]
        while earlier and earlier[-1] == champion:  # a change was interrupted between its two writes
            earlier.pop()
        if not earlier:
            raise NoAnswerError(NO_EARLIER)
        return earlier

    def is_shipped(self, champion: Champion) -> bool:
        """Return whether a version is the shipped predictor."""
        return self.shipped is not None and champion == self.shipped.champion

    def _set_champion(self, champion: Champion) -> None:
        # a challenger that is promoted is none; no alias of the champion means the shipped predictor
        if self.aliased(CHALLENGER) == champion:
            self.set_alias(CHALLENGER, None)
        self.set_alias(CHAMPION, None if self.is_shipped(champion) else champion.version)

    def set_alias(self, alias: str, version: str | None) -> None:
        """Set the version of an alias, or delete the alias."""
        with reachable(self.tracking_uri):
            if version is None:
                self._client.delete_registered_model_alias(self._model_name, alias)
            else:
                self._client.set_registered_model_alias(self._model_name, alias, version)

    def _earlier(self) -> list[str]:
        return str(self._client.get_registered_model(self._model_name).tags.get(HISTORY_TAG, "")).split()

    def _set_earlier(self, versions: list[str]) -> None:
        self._client.set_registered_model_tag(self._model_name, HISTORY_TAG, " ".join(versions[-MAX_EARLIER:]))

    def load(self, champion: Champion) -> B:
        """Return the bundle of a version, downloaded and checked on first use.

        Raises `InputError` if the version is not signed by the key, has no bundle, or that is damaged or of another
        layout, or its trees are out of range.
        """
        if self.is_shipped(champion):
            return self.kind.load(self.file(champion), champion.sha256)
        if not self.key.has_signed(champion.sha256, champion.signature):
            problem = f"version {champion.version} is not signed by the key {self.key.file}"
            cure = "retrain, or copy the key of the state folder that registered it"
            raise InputError("bundle", f"{problem}; {cure}")
        return self._bundles.load(champion.version, champion.sha256, self._download_uri)

    def has(self, champion: Champion) -> bool:
        """Return whether the bundle of a version is in the state folder, with the right checksum."""
        file = self.file(champion)
        return file.is_file() and sha256(file) == champion.sha256

    def file(self, champion: Champion) -> Path:
        """Return the local path of a version's bundle, downloaded or not."""
        if self.shipped and self.is_shipped(champion):
            return self.shipped.file
        return self._bundles.file(champion.sha256)

    def _download_uri(self, version: str) -> str:
        return str(self._client.get_model_version_download_uri(self._model_name, version))

    def aliased(self, alias: str) -> Champion | None:
        """Return the registered version of an alias; None if there is none."""
        if self.is_empty:
            return None
        import_mlflow()
        from mlflow.exceptions import MlflowException

        with reachable(self.tracking_uri):
            try:
                return _champion(self._client.get_model_version_by_alias(self._model_name, alias))
            except MlflowException as error:
                if error.error_code in {"RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"}:
                    return None
                raise


def _champion(version: ModelVersion) -> Champion:
    checksum, signature = (str(version.tags.get(name, "")) for name in (CHECKSUM_TAG, SIGNATURE_TAG))
    description = str(version.description or "")
    return Champion(str(version.version), str(version.run_id), checksum, signature, description)
