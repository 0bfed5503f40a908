"""Health of a server process: registry, store, and whether it is stopping."""

import asyncio
import logging
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

from roofcast.data.errors import NotReadyError, RoofcastError
from roofcast.data.measurements.target import INFERENCE, TARGETS, Target
from roofcast.data.store.database.sqlite_file import DatabaseLostError
from roofcast.serving.app_state.process_memory import MemoryReturn
from roofcast.serving.composition import Service
from roofcast.serving.drift.import_drift import DriftGauges
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
        self._problems: dict[str, str] = {}

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
        activations = {f"registry check of {target}": partial(self._activate, target) for target in TARGETS}
        errors = [await self._attempt(what, activate) for what, activate in activations.items()]
        error = next(filter(None, errors), None)
        self._registry = Check(ok=error is None, detail=str(error or ""))

    def _activate(self, target: Target) -> None:
        champion = self._service.champions[target]
        if champion.refresh():
            version = champion.active_model.champion.version
            logger.info("champion activated: target=%s version=%s", target, version)

    async def check_challenger(self) -> None:
        """Load a new challenger, or drop a withdrawn one, and read the ratios of its answers."""
        await self._attempt("challenger check", self._refresh_challenger)

    def _refresh_challenger(self) -> None:
        self._service.challenger.refresh()
        self.shadow_ratios = self._load_ratios()

    async def check_store(self) -> None:
        """Count the retrainings; check that the store answers, and that its file is there, undamaged and writable."""
        error = await self._attempt("store check", self._count_retrainings)
        self.is_store_lost = isinstance(error, DatabaseLostError)
        self._store = Check(ok=error is None, detail=str(error or ""))

    async def refresh_catalog(self) -> None:
        """Read the user's files and the registered models again: others' changes are known within an interval."""
        await self._attempt("refresh of the catalogue", self._service.catalogs.refresh)

    async def check_drift(self) -> None:
        """Refresh the gauges of drift; if that fails, the last ones stay."""
        await self._attempt("drift", self._refresh_drift)

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

    def _count_retrainings(self) -> None:
        store = self._service.store
        store.database.check_writable()
        self.retrainings = store.retrainings.count_by_state()

    async def _attempt(self, what: str, work: Callable[[], object]) -> RoofcastError | None:
        """Run a check in a thread; return its error. One that lasts is logged once."""
        error: RoofcastError | None = None
        try:
            await asyncio.to_thread(work)
        except RoofcastError as expected:
            error = expected
        except Exception:
            logger.exception("%s failed", what)
            error = RoofcastError(UNEXPECTED)
        if error and str(error) != self._problems.get(what):
            logger.warning("%s failed: %s", what, error)
        self._problems[what] = str(error or "")
        return error

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
