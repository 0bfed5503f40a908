"""The version that was compared last, with its bundle, if it is neither in service nor the challenger."""

from __future__ import annotations

import threading

from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.training.lifecycle.registry.registry import Champion, Registry


class ComparedVersion:
    """Cache of one loaded version; threads share it, and one at a time loads."""

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._model: LoadedModel | None = None

    def load(self, registry: Registry, version: Champion) -> LoadedModel:
        """Return a version with its bundle.

        Raises
        ------
        NotReadyError
            If the registry does not answer.
        InputError
            If the bundle cannot be read.
        """
        with self._loading:
            if self._model is None or self._model.champion != version:
                self._model = None  # the earlier one is freed first: there is memory for one
                self._model = LoadedModel(version, registry.load(version))
            return self._model
