"""Prometheus metrics. Keep label cardinality low: use route templates, never user input.

Server processes write to files in one folder, and each of them can sum them up. `prometheus_multiproc` makes the
folder and must be entered before this module is first imported.
"""

import os
from collections import Counter as TallyOf
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from roofcast.data.errors import NotReadyError
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.composition import Service
from roofcast.serving.http.telemetry.health_monitor import HealthMonitor
from roofcast.serving.http.telemetry.prometheus_multiproc import FOLDER_VARIABLE, reserve_files
from roofcast.training.drift.answer_ratios import AnswerRatios
from roofcast.training.drift.drift_report import GroupErrors
from roofcast.training.drift.paired_errors import PairedErrors

if FOLDER_VARIABLE in os.environ:
    reserve_files(Path(os.environ[FOLDER_VARIABLE]))

_OWN = CollectorRegistry()

REQUEST_SECONDS = Histogram(
    "roofcast_request_seconds", "Time to answer a request.", ("method", "route", "status"), registry=_OWN
)
PREDICTIONS = Counter("roofcast_predictions", "Predicted rows by status.", ("status",), registry=_OWN)
OUTSIDE = Counter("roofcast_predictions_outside", "Predicted rows outside the training data.", registry=_OWN)
RECOMMENDATIONS = Counter(
    "roofcast_recommendations", "Recommendations by whether anything meets the limits.", ("found",), registry=_OWN
)

SHED = Counter(
    "roofcast_requests_shed",
    "Requests that got no slot, by kind of request and by whether they were refused or their client had left.",
    ("lane", "reason"),
    registry=_OWN,
)


SHADOW = Counter(
    "roofcast_shadow_rows",
    "Sampled rows by whether the challenger answered them too, they were dropped under load, or it failed.",
    ("outcome",),
    registry=_OWN,
)


def count_shadow(outcome: str, n_row: int) -> None:
    """Count rows that were sampled for the challenger."""
    SHADOW.labels(outcome).inc(n_row)


def count_answers(answers: Mapping[str, ColumnArray]) -> None:
    """Count the rows of a prediction."""
    for status, n in TallyOf(answers["status"].tolist()).items():
        PREDICTIONS.labels(str(status)).inc(n)
    OUTSIDE.inc(int(answers["outside"].sum()))


def exposition(service: Service, monitor: HealthMonitor) -> bytes:
    """Return the metrics of all server processes and the state of this one, in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_ServiceCollector(service, monitor))
    if FOLDER_VARIABLE in os.environ:
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    else:
        registry.register(_OWN)
    return generate_latest(registry)


class _ServiceCollector(Collector):
    def __init__(self, service: Service, monitor: HealthMonitor) -> None:
        self._service = service
        self._monitor = monitor

    def collect(self) -> Iterator[Metric]:
        info = GaugeMetricFamily(
            "roofcast_predictor_info", "The active predictor.", labels=("version", "sha256", "roofcast_version")
        )
        try:
            active = self._service.active_model
            info.add_metric((active.champion.version, active.champion.sha256, active.bundle.roofcast_version), 1)
        except NotReadyError:
            pass
        yield info
        checks = GaugeMetricFamily("roofcast_check_ok", "Whether a part of the service works.", labels=("check",))
        for name, check in self._monitor.checks.items():
            checks.add_metric((name,), check.ok)
        yield checks
        retrainings = GaugeMetricFamily("roofcast_retrainings", "Retrainings by state.", labels=("state",))
        for state in ("queued", "running", "done", "failed", "cancelled"):
            retrainings.add_metric((state,), self._monitor.retrainings.get(state, 0))
        yield retrainings
        yield from _drift_gauges(self._monitor.drift.errors)
        if challenger := self._service.challenger.model:
            yield from _challenger_gauges(challenger, self._monitor)


DRIFT_GAUGES: Final = {
    "median_ape": "Median absolute percentage error of the predictor on recent rows that it has not learnt.",
    "bias": "Median of measured / predicted on these rows.",
    "coverage": "Share of these rows inside their 90 % interval.",
    "n_row": "Number of these rows.",
}
"""Help of each gauge ``roofcast_drift_NAME``."""


def _drift_gauges(errors: Sequence[GroupErrors]) -> Iterator[Metric]:
    for name, text in DRIFT_GAUGES.items():
        gauge = GaugeMetricFamily(f"roofcast_drift_{name}", text, labels=("metric",))
        for one in errors:
            gauge.add_metric((one.metric,), float(getattr(one, name)))
        yield gauge


CHALLENGER_ERROR_GAUGES: Final = {
    "champion_median_ape": "Median absolute percentage error of the champion on recent rows that neither has learnt.",
    "challenger_median_ape": "The same of the challenger, on the same rows.",
    "n_row": "Number of these rows.",
}
RATIO_GAUGES: Final = {
    "low_ratio": "Quantile .05 of challenger / champion over the rows that both answered.",
    "median_ratio": "Median of challenger / champion over these rows.",
    "high_ratio": "Quantile .95 of challenger / champion over these rows.",
}
"""Help of each gauge ``roofcast_shadow_NAME``."""


def _challenger_gauges(challenger: LoadedModel, monitor: HealthMonitor) -> Iterator[Metric]:
    info = GaugeMetricFamily("roofcast_challenger_info", "The loaded challenger.", labels=("version", "sha256"))
    info.add_metric((challenger.champion.version, challenger.champion.sha256), 1)
    yield info
    sources: tuple[tuple[Mapping[str, str], Sequence[PairedErrors | AnswerRatios]], ...] = (
        (CHALLENGER_ERROR_GAUGES, monitor.drift.challenger_errors),
        (RATIO_GAUGES, monitor.shadow_ratios),
    )
    for gauges, values in sources:
        for name, text in gauges.items():
            gauge = GaugeMetricFamily(f"roofcast_shadow_{name}", text, labels=("metric",))
            for one in values:
                gauge.add_metric((one.metric,), float(getattr(one, name)))
            yield gauge
