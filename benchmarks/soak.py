"""Soak test: a mix of all requests at a share of the capacity; prints JSON on the last line.

    python -m benchmarks.soak --minutes 60 --share 0.8 [--home FOLDER] [--workers 2]

First a closed loop measures the capacity. Then the mix runs at a share of it, evenly paced; the latency of a late
request counts from its due time. Reported are errors, and the growth of resident memory and latency from the first
quarter to the last.
"""

import argparse
import statistics
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.load import MEASURED, PREDICTION, QUERY, RECOMMENDATION, Answer, Request, drive
from benchmarks.over_http import ENVIRONMENT, MB, report, train_if_needed
from roofcast.data.store.api_keys import KeyStore
from roofcast.data.store.database.database import Database
from roofcast.data.units import ms_from_s
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.logs import configure_logs
from tests.attack.service import Service, serving
from tests.serving.http_client import CONFIG

N_CLIENT: Final = 4
CAPACITY_S: Final = 20.0
MEMORY_INTERVAL_S: Final = 5.0


def mix(key: str) -> list[tuple[Request, int]]:
    """Return the requests with their frequency in percent."""
    own_model = {"models": [{"name": "own", "config": CONFIG}], "rows": [{**QUERY, "model": "own"}]}
    many = {"rows": [{**QUERY, "concurrency": n % 200 + 1} for n in range(300)]}
    bearer = {"authorization": f"Bearer {key}"}
    return [
        (PREDICTION, 50),
        (RECOMMENDATION, 15),
        (Request.of("POST", "/v1/predictions", own_model), 8),
        (Request.of("POST", "/v1/predictions", many), 4),
        (Request.of("POST", "/v1/explanations", {"rows": [QUERY]}), 3),
        (Request.of("POST", "/v1/measurements", {"rows": [MEASURED]}, bearer), 5),
        (Request.of("GET", "/v1/measurements?limit=50", None, bearer), 3),
        (Request.of("GET", "/v1/models"), 2),
        (Request.of("GET", "/v1/predictor"), 2),
        (Request.of("GET", "/v1/campaigns"), 1),
        (Request.of("GET", "/readyz"), 4),
        (Request.of("GET", "/metrics"), 1),
        (Request.of("POST", "/v1/predictions", {"rows": "none"}), 2),
    ]


INVALID: Final = 12
"""Index in the mix of the invalid request, whose expected status is 422."""


def growth(values: list[float]) -> float:
    """Return the relative growth of the median from the first quarter to the last."""
    quarter = max(1, len(values) // 4)
    return statistics.median(values[-quarter:]) / statistics.median(values[:quarter]) - 1


def count_errors(answers: list[Answer]) -> int:
    """Count the answers with an unexpected status."""
    return sum(not (each.status == 422 if each.kind == INVALID else 200 <= each.status < 300) for each in answers)


def record_memory(service: Service, stopping: threading.Event, memory: list[float]) -> None:
    """Record the resident memory of the server processes until `stopping` is set."""
    while not stopping.wait(MEMORY_INTERVAL_S):
        memory.append(sum(service.memory_byte()) / MB)


def run(service: Service, key: str, minutes: float, share: float) -> dict[str, Any]:
    """Measure the capacity, run the mix at a share of it, and return the figures."""
    requests = mix(key)
    full = drive(service.address, requests, N_CLIENT, CAPACITY_S)
    capacity = len(full) / CAPACITY_S
    memory, stopping = [sum(service.memory_byte()) / MB], threading.Event()
    watcher = threading.Thread(target=record_memory, args=(service, stopping, memory))
    watcher.start()
    answers = drive(service.address, requests, N_CLIENT, minutes * 60, rate=share * capacity)
    stopping.set()
    watcher.join()
    latency_ms = [float(ms_from_s(each.duration_s)) for each in answers]
    return {
        "minutes": minutes,
        "capacity_request_per_s": capacity,
        "request_per_s": len(answers) / (minutes * 60),
        "requests": len(answers),
        "errors": count_errors(answers) + count_errors(full),
        "latency_p50_ms": float(np.percentile(latency_ms, 50)),
        "latency_p99_ms": float(np.percentile(latency_ms, 99)),
        "latency_growth_ratio": growth(latency_ms),
        "memory_mb_start": memory[0],
        "memory_mb_end": memory[-1],
        "memory_growth_ratio": growth(memory),
    }


def main() -> None:
    """Run the soak test and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--share", type=float, default=0.8, help="share of the capacity")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--home", type=Path, help="state folder with a predictor; by default, a predictor is trained")
    options = parser.parse_args()
    configure_logs()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        home = train_if_needed(options.home or Path(folder, "home"))
        with closing(Database(Settings(home=home).store_url)) as database:
            key = KeyStore(database).create(f"soak-{time.time():.0f}", "write", None)[1]
        with serving(home, Path(folder, "log"), options.workers, **ENVIRONMENT) as service:
            figures = run(service, key, options.minutes, options.share)
    figures["took_s"] = time.perf_counter() - started
    report(figures)


if __name__ == "__main__":
    main()
