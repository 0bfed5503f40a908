"""Health of a server process: registry, store, and whether it is stopping."""

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Iterator
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
REGISTRY = "registry"


class HealthMonitor:
    """Checks of the parts of a service in the background, so that a probe never waits for them.

    `service`: a new champion is activated in it; where that fails, the active one stays.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._memory = MemoryReturn()
        self._errors: dict[str, RoofcastError | None] = {}
        self._works: dict[str, Callable[[], object]] = {
            "store": self._check_store,
            "catalogue": service.catalogs.refresh,  # others' changes are known within an interval
            **{f"{REGISTRY} of {target}": partial(self._activate, target) for target in TARGETS},
            "challenger": self._refresh_challenger,
            "drift": self._refresh_drift,
            "memory": self._memory.return_if_grown,
        }
        self.is_stopping = False
        self.retrainings: dict[str, int] = {}
        self.drift = DriftGauges()
        self.shadow_ratios: tuple[AnswerRatios, ...] = ()

    @property
    def parts(self) -> list[tuple[str, ...]]:
        """Parts that are checked, each group in turn: first the store, the catalogue, and the registries in one."""
        others = [(part,) for part in self._works if not part.startswith(REGISTRY)]
        return [*others[:2], tuple(part for part in self._works if part.startswith(REGISTRY)), *others[2:]]

    @property
    def is_store_lost(self) -> bool:
        """Whether the file of the store was deleted."""
        return isinstance(self._errors.get("store"), DatabaseLostError)

    @property
    def checks(self) -> dict[str, Check]:
        """Result of the last check of each part that readiness reports."""
        try:
            predictor = Check(ok=True, detail=f"version {self._service.active_model.champion.version}")
        except NotReadyError as error:
            predictor = Check(ok=False, detail=str(error))
        registries = (part for part in self._works if part.startswith(REGISTRY))
        checks = {"predictor": predictor, "store": self._last("store"), "registry": self._last(*registries)}
        challenger = self._service.challenger
        if challenger.problem:
            checks["challenger"] = Check(ok=False, detail=challenger.problem)
        elif challenger.model:
            checks["challenger"] = Check(ok=True, detail=f"version {challenger.model.champion.version}")
        return checks

    def _last(self, *parts: str) -> Check:
        error = next(filter(None, map(self._errors.get, parts)), None)
        return Check(ok=error is None, detail=str(error or ""))

    async def check(self, *parts: str) -> None:
        """Check parts in turn, in a thread; an error that lasts is logged once."""
        for part in parts:
            await self._check(part)

    async def _check(self, part: str) -> None:
        error: RoofcastError | None = None
        try:
            await asyncio.to_thread(self._works[part])
        except RoofcastError as expected:
            error = expected
        except Exception:
            logger.exception("%s check failed", part)
            error = RoofcastError(UNEXPECTED)
        if error and str(error) != str(self._errors.get(part)):
            logger.warning("%s check failed: %s", part, error)
        self._errors[part] = error

    async def poll(self, *parts: str) -> None:
        """Repeat the check of parts for ever."""
        while True:
            await asyncio.sleep(self._service.settings.poll_s)
            await self.check(*parts)

    def _check_store(self) -> None:
        store = self._service.store
        store.database.check_writable()
        self.retrainings = store.retrainings.count_by_state()

    def _activate(self, target: Target) -> None:
        champion = self._service.champions[target]
        if champion.refresh():
            version = champion.active_model.champion.version
            logger.info("champion activated: target=%s version=%s", target, version)

    def _refresh_challenger(self) -> None:
        self._service.challenger.refresh()
        challenger = self._service.challenger.model
        if challenger is None or not self._service.champions[INFERENCE].is_loaded:
            self.shadow_ratios = ()
            return
        pair = self._service.active_model.champion.sha256, challenger.champion.sha256
        self.shadow_ratios = tuple(summarize(self._service.store.shadow_counts.load(*pair, kind=ALL)[0]))

    def _refresh_drift(self) -> None:
        service = self._service
        if service.champions[INFERENCE].is_loaded:
            self.drift.refresh(service.stores, service.compared_models, service.settings.drift_days)

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
