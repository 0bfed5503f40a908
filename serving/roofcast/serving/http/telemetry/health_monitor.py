"""Health of a server process: registry, store, and whether it is stopping."""

import asyncio
import logging
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from roofcast.data.errors import NotReadyError, RoofcastError
from roofcast.data.measurements.target import INFERENCE, TARGETS, Target
from roofcast.data.store.database.sqlite_file import DatabaseLostError
from roofcast.serving.app_state.process_memory import MemoryReturn
from roofcast.serving.composition import Service
from roofcast.serving.drift.gauges import DriftGauges
from roofcast.serving.http.schemas.resources import Check
from roofcast.training.drift.answer_ratios import AnswerRatios, summarize
from roofcast.training.drift.groups import ALL

logger = logging.getLogger(__name__)

STOPPING = "the service is stopping; ask another one"
UNEXPECTED = "the check failed; the service's log has the traceback"


class HealthMonitor:
    """Background checks of registry and store, so that a probe never waits for them.

    `service`: a new champion is activated in it.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self.is_stopping = False
        self.is_store_lost = False
        self.retrainings: dict[str, int] = {}
        self.drift = DriftGauges()
        self.shadow_ratios: tuple[AnswerRatios, ...] = ()
        self._registry = Check(ok=True)
        self._store = Check(ok=True)
        self._memory = MemoryReturn()

    @property
    def checks(self) -> dict[str, Check]:
        """Result of the last check of each part."""
        try:
            predictor = Check(ok=True, detail=f"version {self._service.active_model.champion.version}")
        except NotReadyError as error:
            predictor = Check(ok=False, detail=str(error))
        checks = {"predictor": predictor, "store": self._store, "registry": self._registry}
        challenger = self._service.challenger
        if challenger.problem:
            checks["challenger"] = Check(ok=False, detail=challenger.problem)
        elif challenger.model:
            checks["challenger"] = Check(ok=True, detail=f"version {challenger.model.champion.version}")
        return checks

    async def check_registry(self) -> None:
        """Activate new champions of both targets; where that fails, the active one stays."""
        problems = [await self._refresh(target) for target in TARGETS]
        problem = next(filter(None, problems), "")
        self._registry = Check(ok=not problem, detail=problem)

    async def _refresh(self, target: Target) -> str:
        try:
            champion = self._service.champions[target]
            if await asyncio.to_thread(champion.refresh):
                version = champion.active_model.champion.version
                logger.info("champion activated: target=%s version=%s", target, version)
        except RoofcastError as error:
            logger.warning("registry check failed: target=%s: %s", target, error)
            return str(error)
        except Exception:
            logger.exception("registry check failed: target=%s", target)
            return UNEXPECTED
        return ""

    async def check_challenger(self) -> None:
        """Load a new challenger, or drop a withdrawn one, and read the ratios of its answers.

        The checks of registry and store report those that are down.
        """
        try:
            await asyncio.to_thread(self._service.challenger.refresh)
            self.shadow_ratios = await asyncio.to_thread(self._load_ratios)
        except RoofcastError as error:
            logger.warning("challenger not checked: %s", error)
        except Exception:
            logger.exception("challenger not checked")

    async def check_store(self) -> None:
        """Count the retrainings; check that the store answers, and that its file is there, undamaged and writable."""
        try:
            self.retrainings = await asyncio.to_thread(self._count_retrainings)
            self._store, self.is_store_lost = Check(ok=True), False
        except RoofcastError as error:
            self.is_store_lost = isinstance(error, DatabaseLostError)
            if self._store.ok:
                logger.warning("store check failed: %s", error)
            self._store = Check(ok=False, detail=str(error))
        except Exception:
            logger.exception("store check failed")
            self._store = Check(ok=False, detail=UNEXPECTED)

    async def refresh_catalog(self) -> None:
        """Read the user's files and the registered models again: others' changes are known within an interval."""
        try:
            await asyncio.to_thread(self._service.catalogs.refresh)
        except Exception:
            logger.exception("catalogue not refreshed")

    async def check_drift(self) -> None:
        """Refresh the gauges of drift; if that fails, the last ones stay."""
        try:
            await asyncio.to_thread(self._refresh_drift)
        except RoofcastError as error:
            logger.warning("drift not computed: %s", error)
        except Exception:
            logger.exception("drift not computed")

    async def return_memory(self) -> None:
        """Return what large requests have freed to the operating system."""
        await asyncio.to_thread(self._memory.return_if_grown)

    def _refresh_drift(self) -> None:
        service = self._service
        if service.champions[INFERENCE].is_loaded:
            self.drift.refresh(service.stores, service.compared_models, service.settings.drift_days)

    def _load_ratios(self) -> tuple[AnswerRatios, ...]:
        challenger = self._service.challenger.model
        if challenger is None or not self._service.champions[INFERENCE].is_loaded:
            return ()
        pair = self._service.active_model.champion.sha256, challenger.champion.sha256
        return tuple(summarize(self._service.store.shadow_counts.load(*pair, kind=ALL)[0]))

    def _count_retrainings(self) -> dict[str, int]:
        store = self._service.store
        store.database.check_writable()
        return store.retrainings.count_by_state()

    async def poll(self, check: Callable[[], Awaitable[None]]) -> None:
        """Repeat a check for ever."""
        while True:
            await asyncio.sleep(self._service.settings.poll_s)
            await check()

    @contextmanager
    def drain_at_sigterm(self, drain_s: float) -> Iterator[None]:
        """At SIGTERM, report that the service is stopping, and stop it `drain_s` later.

        Load balancers use that time to send requests elsewhere; then the server's own handler runs. Signals reach
        only the main thread; in another thread nothing changes.
        """
        handler = signal.getsignal(signal.SIGTERM)
        if threading.current_thread() is not threading.main_thread() or not callable(handler):
            yield
            return
        loop = asyncio.get_running_loop()

        def drain(number: int, frame: FrameType | None) -> None:
            self.is_stopping = True
            loop.call_soon_threadsafe(loop.call_later, drain_s, handler, number, frame)

        signal.signal(signal.SIGTERM, drain)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, handler)
