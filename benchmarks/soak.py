"""A mix of all that the service is asked, for long, at a share of what it can do; JSON on the last line.

    python -m benchmarks.soak --minutes 60 --share 0.8 [--home FOLDER] [--workers 2]

First as many requests as go are sent for a while, which is the capacity. Then the mix runs at a share of it, at an
even pace; a request that is sent late, as the one before it was slow, counts from when it was due. What is told of is
errors, and how much resident memory and latency grow from the first quarter to the last.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.load import MEASURED, PREDICTION, QUESTION, RECOMMENDATION, Answer, Request, drive
from benchmarks.over_http import ENVIRONMENT, MB, report, trained
from roofcast.data.store.api_keys import KeyStore
from roofcast.data.store.database import Database
from roofcast.data.units import ms_from_s
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.logs import configure_logs
from tests.attack.service import Service, serving
from tests.serving.client import CONFIG

N_CLIENT: Final = 4
CAPACITY_S: Final = 20.0
LOOK_S: Final = 5.0


def mix(key: str) -> list[tuple[Request, int]]:
    """Return the requests, and how often each comes among a hundred."""
    of_own = {"models": [{"name": "own", "config": CONFIG}], "rows": [{**QUESTION, "model": "own"}]}
    many = {"rows": [{**QUESTION, "concurrency": n % 200 + 1} for n in range(300)]}
    bearer = {"authorization": f"Bearer {key}"}
    return [
        (PREDICTION, 50),
        (RECOMMENDATION, 15),
        (Request.of("POST", "/v1/predictions", of_own), 8),
        (Request.of("POST", "/v1/predictions", many), 4),
        (Request.of("POST", "/v1/explanations", {"rows": [QUESTION]}), 3),
        (Request.of("POST", "/v1/measurements", {"rows": [MEASURED]}, bearer), 5),
        (Request.of("GET", "/v1/measurements?limit=50"), 3),
        (Request.of("GET", "/v1/models"), 2),
        (Request.of("GET", "/v1/predictor"), 2),
        (Request.of("GET", "/v1/campaigns"), 1),
        (Request.of("GET", "/readyz"), 4),
        (Request.of("GET", "/metrics"), 1),
        (Request.of("POST", "/v1/predictions", {"rows": "none"}), 2),
    ]


REFUSED: Final = 12
"""The one of them that is to be refused."""


def growth(values: list[float]) -> float:
    """Return the median of the last quarter over that of the first, less one."""
    quarter = max(1, len(values) // 4)
    return statistics.median(values[-quarter:]) / statistics.median(values[:quarter]) - 1


def n_wrong(seen: list[Answer]) -> int:
    """Return how many requests were not answered as they should be."""
    return sum(not (each.status == 422 if each.kind == REFUSED else 200 <= each.status < 300) for each in seen)


def watched(service: Service, stopping: threading.Event, memory: list[float]) -> None:
    """Note the resident memory of the server processes until told to stop."""
    while not stopping.wait(LOOK_S):
        memory.append(sum(service.memory_byte()) / MB)


def run(service: Service, key: str, minutes: float, share: float) -> dict[str, Any]:
    """Find the capacity, run at a share of it, and return the figures."""
    asked = mix(key)
    full = drive(service.address, asked, N_CLIENT, CAPACITY_S)
    capacity = len(full) / CAPACITY_S
    memory, stopping = [sum(service.memory_byte()) / MB], threading.Event()
    watcher = threading.Thread(target=watched, args=(service, stopping, memory))
    watcher.start()
    seen = drive(service.address, asked, N_CLIENT, minutes * 60, rate=share * capacity)
    stopping.set()
    watcher.join()
    took_ms = [float(ms_from_s(each.took_s)) for each in seen]
    return {
        "minutes": minutes,
        "capacity_request_per_s": capacity,
        "request_per_s": len(seen) / (minutes * 60),
        "requests": len(seen),
        "errors": n_wrong(seen) + n_wrong(full),
        "latency_p50_ms": float(np.percentile(took_ms, 50)),
        "latency_p99_ms": float(np.percentile(took_ms, 99)),
        "latency_growth_ratio": growth(took_ms),
        "memory_mb_start": memory[0],
        "memory_mb_end": memory[-1],
        "memory_growth_ratio": growth(memory),
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--share", type=float, default=0.8, help="of the capacity")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--home", type=Path, help="state folder with a predictor; one is trained if left out")
    options = parser.parse_args()
    configure_logs()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        home = trained(options.home or Path(folder, "home"))
        with closing(Database(Settings(home=home).store_url)) as database:
            key = KeyStore(database).create(f"soak-{time.time():.0f}", "write", None)[1]
        with serving(home, Path(folder, "log"), options.workers, **ENVIRONMENT) as service:
            figures = run(service, key, options.minutes, options.share)
    figures["took_s"] = time.perf_counter() - started
    report(figures)


if __name__ == "__main__":
    main()
