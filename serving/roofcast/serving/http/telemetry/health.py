"""What a server process knows of its own state: the registry, the store, and whether it is about to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from roofcast.data.errors import NotReadyError, RoofcastError
from roofcast.serving.app_state.app_state import AppState
from roofcast.serving.http.schemas.resources import Check

logger = logging.getLogger(__name__)

STOPPING = "the service is stopping; ask another one"


class HealthMonitor:
    """Looks after registry and store, so that who asks for their state never waits for them.

    Parameters
    ----------
    bench
        Whose registry and store; a new champion is put into service on it.
    """

    def __init__(self, bench: AppState) -> None:
        self._bench = bench
        self.is_stopping = False
        self.retrainings: dict[str, int] = {}
        self._registry = Check(ok=True)
        self._store = Check(ok=True)

    @property
    def checks(self) -> dict[str, Check]:
        """Each part, as it was at the last look."""
        try:
            predictor = Check(ok=True, detail=f"version {self._bench.in_service.champion.version}")
        except NotReadyError as error:
            predictor = Check(ok=False, detail=str(error))
        return {"predictor": predictor, "store": self._store, "registry": self._registry}

    async def look_at_registry(self) -> None:
        """Put a new champion into service; whatever goes wrong, the one in service stays and is looked for again."""
        try:
            if await asyncio.to_thread(self._bench.refresh):
                logger.info("predictor version %s is in service", self._bench.in_service.champion.version)
            self._registry = Check(ok=True)
        except RoofcastError as error:
            logger.warning("no newer predictor could be loaded: %s", error)
            self._registry = Check(ok=False, detail=str(error))
        except Exception:
            logger.exception("no newer predictor could be loaded")
            self._registry = Check(ok=False, detail="could not be asked; the log says more")

    async def look_at_store(self) -> None:
        """Count the retrainings, which also shows whether the store answers."""
        try:
            self.retrainings = await asyncio.to_thread(self._retrainings)
            self._store = Check(ok=True)
        except RoofcastError as error:
            if self._store.ok:
                logger.warning("the measurement store does not answer: %s", error)
            self._store = Check(ok=False, detail=str(error))
        except Exception:
            logger.exception("the measurement store could not be asked")
            self._store = Check(ok=False, detail="could not be asked; the log says more")

    def _retrainings(self) -> dict[str, int]:
        _ = self._bench.catalog  # so that the first requests find the models registered here, whoever else asks
        return self._bench.store.retraining_states()

    async def keep(self, look: Callable[[], Awaitable[None]]) -> None:
        """Look again and again."""
        while True:
            await asyncio.sleep(self._bench.settings.poll_s)
            await look()

    @contextmanager
    def draining(self, pause_s: float) -> Iterator[None]:
        """At SIGTERM, say for a while that the service is stopping before it stops.

        Whoever shares out requests has that while to send them elsewhere. The server's own handler then does the
        stopping. Only the main thread can be told of signals; elsewhere nothing changes.
        """
        stop = signal.getsignal(signal.SIGTERM)
        if threading.current_thread() is not threading.main_thread() or not callable(stop):
            yield
            return
        loop = asyncio.get_running_loop()

        def drain(number: int, frame: FrameType | None) -> None:
            self.is_stopping = True
            loop.call_soon_threadsafe(loop.call_later, pause_s, stop, number, frame)

        signal.signal(signal.SIGTERM, drain)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, stop)
