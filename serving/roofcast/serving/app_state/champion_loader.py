"""The champion in service: loaded from the registry, the cache of the last champion, or the package.

The registry cannot confirm the checksum at startup, so the cache and its bundle are used only if no other user can
have written them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Generic

from roofcast.data.errors import InputError, NotReadyError, RoofcastError
from roofcast.data.home import make_home
from roofcast.serving.app_state.process_memory import release_freed_memory
from roofcast.training.lifecycle.bundles.bundle_types import B
from roofcast.training.lifecycle.registry.registry import NO_CHAMPION, Champion, Registry

logger = logging.getLogger(__name__)

FILE_NAME: Final = "champion.json"
CHALLENGER_FILE_NAME: Final = "challenger.json"


def ownership_problem(file: Path) -> str:
    """Return why another user may have written a file; blank if none can, or if the platform has no owners.

    Raises `OSError` if the file's status cannot be read.
    """
    if not hasattr(os, "getuid"):
        return ""
    status = file.stat()
    if status.st_uid != os.getuid():
        return f"{file} must belong to the user {os.getuid()} that serves, got {status.st_uid}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{file} must not be writable by others; chmod go-w it"
    return ""


class ChampionCache:
    """File in the state folder with a version, the checksum of its bundle and the registry's stamp."""

    def __init__(self, home: Path, name: str = FILE_NAME) -> None:
        self._file = home / name

    def write(self, champion: Champion | None, stamp: str = "") -> None:
        """Write a version, or that there is none, and the registry's stamp, which is blank if it has none.

        A failure is logged.
        """
        draft = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        try:
            draft.unlink(missing_ok=True)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump({**(asdict(champion) if champion else {}), "stamp": stamp}, stream)
            draft.replace(self._file)
        except OSError as error:
            logger.warning("%s not written: %s", self._file.name, error)
            with contextlib.suppress(OSError):
                draft.unlink()

    def read(self) -> tuple[Champion | None, str] | None:
        """Return the stored version, if any, and stamp; None if the file is missing, damaged or not trusted."""
        from roofcast.training.lifecycle.registry.registry import Champion  # noqa: PLC0415  (the learning libraries)

        try:
            problem = ownership_problem(self._file)
            if problem:
                logger.warning("%s ignored: %s", self._file.name, problem)
                return None
            fields = json.loads(self._file.read_text(encoding="utf-8"))
            stamp = str(fields.get("stamp", ""))
            if "version" not in fields:
                return None, stamp
            version, run_id, checksum = (str(fields[name]) for name in ("version", "run_id", "sha256"))
            champion = Champion(version, run_id, checksum, str(fields.get("signature", "")))
            return champion, stamp
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None


@dataclass(frozen=True, slots=True)
class LoadedModel(Generic[B]):
    """A champion with its loaded bundle."""

    champion: Champion
    bundle: B


class ChampionLoader(Generic[B]):
    """The loaded champion of a registry, shared by threads.

    - `home`: State folder, for the cache of the last champion.
    - `loads_at_first_use`: Whether `active_model` loads a champion if none is loaded; while the registry does not
      answer, that is the shipped predictor.
    - `warn`: Receives the message about that.
    """

    def __init__(
        self,
        registry: Registry[B],
        home: Path,
        *,
        loads_at_first_use: bool = False,
        warn: Callable[[str], None] = logger.warning,
    ) -> None:
        self._registry = registry
        self._home = home
        self._loads_at_first_use = loads_at_first_use
        self._warn = warn
        self._cache = ChampionCache(home, f"{registry.kind.name('champion')}.json")
        self._loading = threading.Lock()
        self._loaded: LoadedModel[B] | None = None
        self._stamp = ""
        self._problem = NO_CHAMPION

    @property
    def registry(self) -> Registry[B]:
        """The registry; its state folder exists."""
        make_home(self._home)
        return self._registry

    @property
    def active_model(self) -> LoadedModel[B]:
        """The champion in service. Raises `NotReadyError` if none is loaded."""
        if self._loaded is None and self._loads_at_first_use and not self.resume():
            try:
                self.refresh()
            except NotReadyError as error:
                if not self._fall_back():
                    raise
                self._warn(f"the shipped predictor answers until the registry does: {error}")
        loaded = self._loaded
        if loaded is None:
            raise NotReadyError(self._problem)
        return loaded

    @property
    def is_loaded(self) -> bool:
        """Whether a champion is in service."""
        return self._loaded is not None

    def refresh(self, preloaded: LoadedModel[B] | None = None) -> bool:
        """Load the registry's champion if it is not the one in service; return whether one was loaded.

        A registry whose stamp has not changed is not queried.

        `preloaded`: a version with its bundle, which is not loaded again if it is the champion. Raises
        `NotReadyError` if the registry does not answer; the champion in service stays. Raises `InputError` if the
        champion cannot be read, as after an upgrade that changed the columns; the one in service stays.
        """
        make_home(self._home)
        with self._loading:
            stamp = self._registry.stamp()
            if stamp and stamp == self._stamp:
                return False
            champion = self._registry.champion()
            is_new = champion is not None and not (self._loaded and self._loaded.champion == champion)
            if champion is not None and is_new:
                self._activate(champion, preloaded.bundle if preloaded and preloaded.champion == champion else None)
            if champion is not None and (is_new or stamp != self._stamp):
                self._cache.write(champion, stamp)
                self._stamp = stamp
            return is_new

    def promote(self, version: str, by: str) -> LoadedModel[B]:
        """Load a version, promote it in the registry and put it into service; the registry writes the audit log.

        `by`: caller. Raises `UnknownNameError` if there is no such version; `InputError` if its bundle cannot be
        read, as after an upgrade that changed the columns; the champion stays.
        """
        bundle = self.registry.load(self._registry.find(version))
        return self._serve(LoadedModel(self._registry.promote(version, by), bundle))

    def roll_back(self, by: str) -> LoadedModel[B]:
        """Put the version before the champion into service, as `promote` does.

        Of two simultaneous calls the second is refused, because its champion has been replaced. Raises
        `NoAnswerError` if there is no earlier version, or the champion has changed since the call.
        """
        champion = self.registry.champion()
        with self._registry.changing():
            bundle = self._registry.load(self._registry.previous())
            promoted = LoadedModel(self._registry.rollback(champion, by), bundle)
        return self._serve(promoted)

    def _serve(self, promoted: LoadedModel[B]) -> LoadedModel[B]:
        self.refresh(promoted)
        return promoted

    def resume(self) -> bool:
        """Load the last champion of this state folder, without importing MLflow; return whether one is in service.

        In a state folder without registered versions that is the shipped predictor. `refresh` looks for a newer
        champion.
        """
        make_home(self._home)
        with self._loading:
            registry = self._registry
            shipped = registry.shipped.champion if registry.shipped else None
            champion, stamp = self._cache.read() or (shipped if registry.is_empty else None, "")
            if champion is None or self._loaded or not registry.has(champion):
                return self._loaded is not None
            problem = "" if champion == shipped else ownership_problem(registry.file(champion))
            if problem:
                logger.warning("last champion not resumed, version=%s: %s", champion.version, problem)
                return False
            try:
                self._activate(champion)
            except RoofcastError as error:
                logger.warning("last champion not resumed, version=%s: %s", champion.version, error)
                return False
            self._stamp = stamp
            return True

    def _fall_back(self) -> bool:
        with self._loading:
            shipped = self._registry.shipped
            if shipped and not self._loaded:
                self._activate(shipped.champion)
            return self._loaded is not None

    def _activate(self, champion: Champion, bundle: B | None = None) -> None:
        try:
            bundle = bundle or self._registry.load(champion)
        except InputError as error:
            self._problem = f"the champion, version {champion.version}, cannot be used: {error}"
            shipped = self._registry.shipped
            if shipped and not self._loaded and champion != shipped.champion:
                self._activate(shipped.champion)
                logger.warning("%s; version %s answers", self._problem, shipped.champion.version)
            raise
        self._loaded = LoadedModel(champion, bundle)
        release_freed_memory()
