"""Prometheus metrics. Keep label cardinality low: use route templates, never user input.

Server processes write to files in one folder, and each of them can sum them up. `prometheus_multiproc` makes the
folder and must be entered before this module is first imported.
"""

import os
from collections import Counter as TallyOf
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from roofcast.data.errors import NotReadyError
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.serving.composition import Service
from roofcast.serving.http.schemas.resources import RetrainingState
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
        service, monitor = self._service, self._monitor
        info = GaugeMetricFamily(
            "roofcast_predictor_info", "The active predictor.", labels=("version", "sha256", "roofcast_version")
        )
        with suppress(NotReadyError):
            active = service.active_model
            info.add_metric((active.champion.version, active.champion.sha256, active.bundle.roofcast_version), 1)
        yield info
        works = {name: check.ok for name, check in monitor.checks.items()}
        yield _gauge("check_ok", "Whether a part of the service works.", "check", works)
        states = {state: monitor.retrainings.get(state, 0) for state in get_args(RetrainingState)}
        yield _gauge("retrainings", "Retrainings by state.", "state", states)
        yield from _metric_gauges("drift", DRIFT_GAUGES, monitor.drift.errors)
        if challenger := service.challenger.model:
            labels = ("version", "sha256")
            info = GaugeMetricFamily("roofcast_challenger_info", "The loaded challenger.", labels=labels)
            info.add_metric((challenger.champion.version, challenger.champion.sha256), 1)
            yield info
            yield from _metric_gauges("shadow", CHALLENGER_ERROR_GAUGES, monitor.drift.challenger_errors)
            yield from _metric_gauges("shadow", RATIO_GAUGES, monitor.shadow_ratios)


DRIFT_GAUGES: Final = {
    "median_ape": "Median absolute percentage error of the predictor on recent rows that it has not learnt.",
    "bias": "Median of measured / predicted on these rows.",
    "coverage": "Share of these rows inside their 90 % interval.",
    "n_row": "Number of these rows.",
}
"""Help of each gauge ``roofcast_drift_NAME``."""

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


def _metric_gauges(
    kind: str, gauges: Mapping[str, str], values: Sequence[GroupErrors | PairedErrors | AnswerRatios]
) -> Iterator[Metric]:
    for name, text in gauges.items():
        yield _gauge(f"{kind}_{name}", text, "metric", {one.metric: getattr(one, name) for one in values})


def _gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    gauge = GaugeMetricFamily(f"roofcast_{name}", text, labels=(label,))
    for of, value in values.items():
        gauge.add_metric((of,), float(value))
    return gauge
