"""The challenger of the registry, loaded beside the champion."""

import logging
import threading
from pathlib import Path

from roofcast.data.errors import InputError
from roofcast.data.home import make_home
from roofcast.serving.app_state.champion_loader import CHALLENGER_FILE_NAME, ChampionCache, LoadedModel
from roofcast.serving.app_state.process_memory import release_freed_memory
from roofcast.training.lifecycle.gate.challenger_alias import challenger_of, set_challenger
from roofcast.training.lifecycle.registry.registry import Champion, Registry

logger = logging.getLogger(__name__)


class ChallengerLoader:
    """The loaded challenger of a registry, one at most, shared by threads.

    `home`: state folder, for the cache by which a start does without MLflow.
    """

    def __init__(self, registry: Registry, home: Path, *, is_wanted: bool = True) -> None:
        self._registry = registry
        self._home = home
        self._is_wanted = is_wanted
        self._cache = ChampionCache(home, CHALLENGER_FILE_NAME)
        self._loading = threading.Lock()
        self._stamp = ""
        self._latest: Champion | None = None
        self.model: LoadedModel | None = None
        self.problem = ""
        """Why the challenger is not loaded; blank if it is, or there is none."""

    def refresh(self, preloaded: LoadedModel | None = None) -> None:
        """Load the registry's challenger, or drop one that was withdrawn; an unchanged registry is not queried.

        A challenger that cannot be read is a `problem`, and is not tried again.

        `preloaded`: a version with its bundle, which is not loaded again if it is the challenger. Raises
        `NotReadyError` if the registry does not answer; the loaded challenger stays. If a new one cannot be fetched,
        none is loaded until a later call loads it.
        """
        if not self._is_wanted:
            return
        with self._loading:
            stamp = self._registry.stamp()
            if stamp and stamp == self._stamp:
                return
            challenger = self._find(stamp)
            if challenger != self._latest:
                self._latest = None
                self._load(challenger, preloaded)
            self._latest, self._stamp = challenger, stamp

    def shadow(self, version: str, by: str) -> Champion:
        """Load a version, make it the challenger in the registry and return it; the registry writes the audit log.

        `by`: caller. Raises `UnknownNameError` if there is no such version; `InputError` if its bundle cannot be
        read, or it is the champion or the shipped predictor; the challenger stays.
        """
        bundle = self._registry.load(self._registry.find(version))
        challenger = set_challenger(self._registry, version, by)
        self.refresh(LoadedModel(challenger, bundle))
        return challenger

    def _find(self, stamp: str) -> Champion | None:
        cached = self._cache.read() if stamp and not self._stamp else None
        if cached and cached[1] == stamp:
            return cached[0]
        challenger = challenger_of(self._registry)
        if stamp:
            make_home(self._home)
            self._cache.write(challenger, stamp)
        return challenger

    def _load(self, challenger: Champion | None, preloaded: LoadedModel | None) -> None:
        self.problem, self.model = "", None  # the earlier one is freed first: there is memory for one
        if challenger is not None:
            try:
                is_loaded = preloaded is not None and preloaded.champion == challenger
                self.model = preloaded if is_loaded else LoadedModel(challenger, self._registry.load(challenger))
                logger.info("challenger loaded: version=%s", challenger.version)
            except InputError as error:
                self.problem = f"the challenger, version {challenger.version}, cannot be loaded: {error}"
                logger.warning("%s", self.problem)
        release_freed_memory()
