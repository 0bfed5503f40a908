"""The registry of trained bundles: MLflow's model registry, embedded by default.

MLflow is imported by its first use: it takes seconds, and a server that knows its champion need not wait for it.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filelock import FileLock, Timeout

from roofcast.data.errors import InputError, NoAnswerError, NotReadyError, UnknownNameError
from roofcast.training.lifecycle.bundle import FILE_NAME, ModelBundle, load_bundle, sha256

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion
    from mlflow.tracking import MlflowClient

audit = logging.getLogger("roofcast.audit")
"""Is told of every change of what is in service, whoever asked."""

MODEL_NAME: Final = "roofcast"
EXPERIMENT: Final = "roofcast"
CHAMPION: Final = "champion"
HISTORY_TAG: Final = "earlier_champions"
"""Of the registered model: the versions that were in service before the champion, oldest first."""

MOST_EARLIER: Final = 100
"""How many of them are kept; a tag holds some thousand letters."""

CHECKSUM_TAG: Final = "sha256"

BUNDLE_MODE: Final = 0o644
"""Of a bundle that was fetched: a start without the registry loads none that others may write."""

URI_VARIABLE: Final = "MLFLOW_TRACKING_URI"

NO_EARLIER: Final = (
    "there is no earlier champion to go back to; `roofcast promote VERSION` puts any version in service"
)

PROGRAM: Final = "a program"
"""Who asked for a change, where nobody says."""

CHANGE_WAIT_S: Final = 60.0
"""How long a change of the champion waits for another one, which may be fetching a bundle."""

NO_CHAMPION: Final = "no predictor is promoted yet; run `roofcast retrain`"


@dataclass(frozen=True, slots=True)
class Champion:
    """A registered version and what identifies its bundle."""

    version: str
    run_id: str
    sha256: str


@dataclass(frozen=True, slots=True)
class ShippedPredictor:
    """The predictor of the package: the champion where no version is promoted."""

    champion: Champion
    file: Path


class Registry:
    """Registered versions of the predictor: the champion and its predecessors.

    Parameters
    ----------
    home
        Folder of the embedded store (an SQLite file and a folder of artefacts) and of fetched bundles.
    tracking_uri
        Address of an MLflow server; None for the embedded store.
    shipped
        Champion where no version is promoted; `promote` and `rollback` accept it like a registered version.

    Raises
    ------
    NotReadyError
        From every method, if the store cannot be reached.
    """

    def __init__(self, home: Path, tracking_uri: str | None = None, shipped: ShippedPredictor | None = None) -> None:
        self._home = home
        self.shipped = shipped
        self.tracking_uri = tracking_uri or f"sqlite:///{home / 'mlflow.db'}"
        self._creating = FileLock(home / "mlflow.lock")
        self._changing = FileLock(home / "champion.lock")
        self._artifact_location = None if tracking_uri else (home / "artifacts").as_uri()

    def stamp(self) -> str:
        """Return what is another one after every change of an embedded store; blank where nothing tells.

        SQLite counts the changes of a file in its header, unless it writes them into a file beside it.

        References
        ----------
        "Database File Format", section 1.3.7, sqlite.org.
        """
        if not self._artifact_location:
            return ""
        try:
            with (self._home / "mlflow.db").open("rb") as file:
                header = file.read(28)
                changed = os.fstat(file.fileno()).st_mtime_ns
        except OSError:
            return ""
        return f"{header[24:28].hex()}-{changed}" if header[18:20] == b"\1\1" else ""

    @functools.cached_property
    def _client(self) -> MlflowClient:
        """The client; an embedded store is created by its first use, by one process at a time, and may fail to be.

        The file is tried first, because MLflow would try for minutes.
        """
        from mlflow.tracking import MlflowClient

        if not self._artifact_location:
            return MlflowClient(tracking_uri=self.tracking_uri, registry_uri=self.tracking_uri)
        with self._creating:
            with contextlib.closing(sqlite3.connect(self._home / "mlflow.db")) as connection:
                connection.execute("PRAGMA schema_version")
            client = MlflowClient(tracking_uri=self.tracking_uri, registry_uri=self.tracking_uri)
            client.search_experiments(max_results=1)
            return client

    @contextlib.contextmanager
    def run(self, name: str) -> Iterator[str]:
        """Open an MLflow run in the project's experiment and yield its id."""
        import mlflow

        with reachable(self.tracking_uri):
            _speak_to(self.tracking_uri)
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
        from mlflow.exceptions import MlflowException

        with self._creating:
            try:
                self._client.get_registered_model(MODEL_NAME)
            except MlflowException as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
                self._client.create_registered_model(MODEL_NAME)

    def register(self, model_uri: str, run_id: str, checksum: str) -> str:
        """Register a logged model and return its version."""
        with reachable(self.tracking_uri):
            self._make_registered_model()
            version = self._client.create_model_version(
                MODEL_NAME, source=model_uri, run_id=run_id, tags={CHECKSUM_TAG: checksum}
            )
        return str(version.version)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever registered in an embedded store; MLflow is not imported to find out."""
        return self._artifact_location is not None and not (self._home / "mlflow.db").exists()

    def champion(self) -> Champion | None:
        """Return the promoted version; the shipped predictor if none is promoted; else None."""
        promoted = None if self.is_empty else self._aliased(CHAMPION)
        return promoted or (self.shipped.champion if self.shipped else None)

    def versions(self) -> list[Champion]:
        """Return every version, newest first; the shipped predictor is the last."""
        shipped = [self.shipped.champion] if self.shipped else []
        if self.is_empty:
            return shipped
        with reachable(self.tracking_uri):
            versions = self._client.search_model_versions(f"name = '{MODEL_NAME}'")
        return [*sorted(map(_champion, versions), key=lambda c: int(c.version), reverse=True), *shipped]

    def find(self, version: str) -> Champion:
        """Return a version, whether or not it is in service.

        Raises
        ------
        UnknownNameError
            If there is no such version.
        """
        known = {champion.version: champion for champion in self.versions()}
        if version not in known:
            raise UnknownNameError("version", version, known)
        return known[version]

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the champion still: nobody else who works in this state folder changes it until the block ends.

        Raises
        ------
        NotReadyError
            If somebody else is at it for too long.
        """
        try:
            self._changing.acquire(timeout=CHANGE_WAIT_S)
        except Timeout as error:
            raise NotReadyError("the champion is being changed by somebody else; ask again") from error
        try:
            yield
        finally:
            self._changing.release()

    def promote(self, version: str, by: str = PROGRAM) -> Champion:
        """Put a version in service; the one before stays within reach of `rollback`.

        Parameters
        ----------
        version
            In this registry.
        by
            Who asked, for the log.

        Raises
        ------
        UnknownNameError
            If there is no such version.
        """
        with self.changing():
            found, before = self.find(version), self.champion()
            with reachable(self.tracking_uri):
                if before and before.version != version:
                    self._keep_earlier([*self._earlier(), before.version])
                if before != found or not self._is_shipped(found):
                    self._set_champion(found)
            _tell("promotion", by, before, found)
        return found

    def previous(self) -> Champion:
        """Return the version that `rollback` would put back; one that was deleted since is passed over.

        Raises
        ------
        NoAnswerError
            If there is none.
        """
        return self._way_back(self.champion())[-1]

    def rollback(self, expected: Champion | None = None, by: str = PROGRAM) -> Champion:
        """Put the version before the champion back in service; asked again, the one before that.

        Parameters
        ----------
        expected
            The champion that is to go; None for whichever it is.
        by
            Who asked, for the log.

        Raises
        ------
        NoAnswerError
            If there is none, or the champion is another one by now.
        """
        with self.changing():
            now = self.champion()
            if expected and now != expected:
                has = f"version {now.version} is" if now else "none is"
                raise NoAnswerError(
                    f"the champion was version {expected.version}, and {has} now; look, and ask again"
                )
            way = self._way_back(now)
            with reachable(self.tracking_uri):
                self._set_champion(way[-1])
                self._keep_earlier([champion.version for champion in way[:-1]])
            _tell("rollback", by, now, way[-1])
        return way[-1]

    def _way_back(self, now: Champion | None) -> list[Champion]:
        """Return the earlier champions that are still there, oldest first, the last of them another than now's."""
        known = {champion.version: champion for champion in self.versions()}
        registered = [champion for champion in known.values() if not self._is_shipped(champion)]
        with reachable(self.tracking_uri):
            earlier = [known[version] for version in self._earlier() if version in known] if registered else []
        while earlier and earlier[-1] == now:  # left by who was stopped between two writes
            earlier.pop()
        if not earlier:
            raise NoAnswerError(NO_EARLIER)
        return earlier

    def _is_shipped(self, champion: Champion) -> bool:
        return self.shipped is not None and champion == self.shipped.champion

    def _set_champion(self, champion: Champion) -> None:
        """Set the alias of the champion; the shipped predictor is the champion where there is no alias."""
        if self._is_shipped(champion):
            self._client.delete_registered_model_alias(MODEL_NAME, CHAMPION)
        else:
            self._client.set_registered_model_alias(MODEL_NAME, CHAMPION, champion.version)

    def _earlier(self) -> list[str]:
        return str(self._client.get_registered_model(MODEL_NAME).tags.get(HISTORY_TAG, "")).split()

    def _keep_earlier(self, versions: list[str]) -> None:
        self._client.set_registered_model_tag(MODEL_NAME, HISTORY_TAG, " ".join(versions[-MOST_EARLIER:]))

    def load(self, champion: Champion) -> ModelBundle:
        """Return the bundle of a version, fetched if need be and checked against its checksum."""
        file = self.file(champion)
        if not self._is_shipped(champion) and not self.has(champion):
            self._fetch(champion, file)
        return load_bundle(file, champion.sha256)

    def has(self, champion: Champion) -> bool:
        """Return whether the bundle of a version is here, so that it can be loaded without asking anyone."""
        file = self.file(champion)
        return file.is_file() and sha256(file) == champion.sha256

    def file(self, champion: Champion) -> Path:
        """Return where the bundle of a version lies once it has been fetched."""
        if self.shipped and self._is_shipped(champion):
            return self.shipped.file
        return self._home / "bundles" / f"{champion.sha256}.roofcast"

    def _fetch(self, champion: Champion, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as folder, reachable(self.tracking_uri):
            found = next(self._download(champion, folder).rglob(FILE_NAME), None)
            if found is None:
                problem = f"version {champion.version} holds no {FILE_NAME}: an earlier version of roofcast made it"
                raise InputError("bundle", f"{problem}; retrain")
            found.chmod(BUNDLE_MODE)
            found.replace(file)

    def _download(self, champion: Champion, folder: str) -> Path:
        import mlflow
        from mlflow.exceptions import MlflowException

        try:
            uri = self._client.get_model_version_download_uri(MODEL_NAME, champion.version)
            return Path(mlflow.artifacts.download_artifacts(uri, dst_path=folder, tracking_uri=self.tracking_uri))
        except (MlflowException, FileNotFoundError) as error:
            if isinstance(error, MlflowException) and error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            problem = f"version {champion.version} has lost its files; promote another one, or retrain"
            raise InputError("bundle", problem) from error

    def _aliased(self, alias: str) -> Champion | None:
        from mlflow.exceptions import MlflowException

        with reachable(self.tracking_uri):
            try:
                return _champion(self._client.get_model_version_by_alias(MODEL_NAME, alias))
            except MlflowException as error:
                if error.error_code in {"RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"}:
                    return None
                raise


def _speak_to(uri: str) -> None:
    """Make MLflow's free functions use a store.

    They also write it into the environment, where the next reader of settings would take it for a server of the
    user's; the variable is put back.
    """
    import mlflow

    before = os.environ.get(URI_VARIABLE)
    mlflow.set_tracking_uri(uri)
    mlflow.set_registry_uri(uri)
    if before is None:
        os.environ.pop(URI_VARIABLE, None)
    else:
        os.environ[URI_VARIABLE] = before


def _tell(action: str, by: str, before: Champion | None, after: Champion) -> None:
    was = before.version if before else "none"
    fields = {"action": action, "caller": by, "version_before": was, "version": after.version}
    audit.info("%s by %s: version %s is in service, was %s", action, by, after.version, was, extra=fields)


def _champion(version: ModelVersion) -> Champion:
    return Champion(str(version.version), str(version.run_id), str(version.tags.get(CHECKSUM_TAG, "")))


@contextlib.contextmanager
def reachable(uri: str) -> Iterator[None]:
    """Turn a store that does not answer into a `NotReadyError` that says which."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (OSError, sqlite3.Error, SQLAlchemyError) as error:
        raise NotReadyError(f"the MLflow store {uri} does not answer: {error}") from error
    except MlflowException as error:
        if error.error_code in {"TEMPORARILY_UNAVAILABLE", "INTERNAL_ERROR"}:
            raise NotReadyError(f"the MLflow store {uri} does not answer: {error}") from error
        raise
