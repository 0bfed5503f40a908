"""Measurements acknowledged per second over HTTP, each in the database file; prints JSON on the last line.

    python -m benchmarks.durable_writes --seconds 20 [--home FOLDER] [--workers 1] [--compare]

Each request has new rows, which its answer compares with the predictor if it asks for that. Writing starts once the
service has answered a first import and uses no processor time. The service is killed at the end, and the rows in the
store are counted. On a shared machine the rows per second of processor time of the service say more than those per
second.
"""

import argparse
import itertools
import json
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from benchmarks.load import MEASURED, Connection, Request
from benchmarks.over_http import ENVIRONMENT, cpu_s, report, train_if_needed
from roofcast.data.store.api_keys import KeyStore
from roofcast.data.store.database.database import Database
from roofcast.data.store.measurement_store import MeasurementStore
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.logs import configure_logs
from tests.attack.service import Service, serving

N_ROW: Final = 500
N_CLIENT: Final = 2
IDLE_SHARE: Final = 0.05
"""Share of a core below which a service is idle."""


def post_rows(
    service: Service, key: str, client: int, until_s: float, acknowledged: list[int], *, compare: bool
) -> None:
    """Post new rows, at least once, until a time; append the number of rows of each acknowledged request."""
    path = f"/v1/measurements?compare={str(compare).lower()}"
    connection, headers = Connection(service.address), {"authorization": f"Bearer {key}"}
    for request in itertools.count():
        if acknowledged and time.time() > until_s:
            break
        rows = [{**MEASURED, "ttft_s": 0.05 + client + (request * N_ROW + i) * 1e-7} for i in range(N_ROW)]
        status, body = connection.send(Request.of("POST", path, {"rows": rows}, headers))
        if status != 201 or json.loads(body)["n_new"] != N_ROW:
            raise AssertionError(f"measurements returned status {status}: {body[:200]!r}")
        acknowledged.append(N_ROW)
    connection.close()


def settle(service: Service, key: str, *, compare: bool) -> int:
    """Import rows once, wait until the service is idle, and return the number of these rows."""
    acknowledged: list[int] = []
    post_rows(service, key, N_CLIENT, 0.0, acknowledged, compare=compare)
    is_idle = False
    while not is_idle:
        before_s = cpu_s(service.process.pid)
        time.sleep(1.0)
        is_idle = cpu_s(service.process.pid) - before_s < IDLE_SHARE
    return sum(acknowledged)


def run(service: Service, key: str, seconds: float, *, compare: bool) -> dict[str, Any]:
    """Post rows from several clients, kill the service, and return the figures."""
    n_first = settle(service, key, compare=compare)
    acknowledged: list[int] = []
    start_s, start_cpu_s = time.time(), cpu_s(service.process.pid)
    clients = [
        threading.Thread(
            target=post_rows,
            args=(service, key, i, start_s + seconds, acknowledged),
            kwargs={"compare": compare},
        )
        for i in range(N_CLIENT)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    took_s, took_cpu_s = time.time() - start_s, cpu_s(service.process.pid) - start_cpu_s
    service.process.kill()
    n_row = sum(acknowledged)
    return {
        "acknowledged": n_first + n_row,
        "rows_per_s": n_row / took_s,
        "rows_per_cpu_s": n_row / took_cpu_s,
        "cpu_s_a_request": took_cpu_s * N_ROW / n_row,
        "rows_a_request": N_ROW,
    }


def main() -> None:
    """Run the writes and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--home", type=Path, help="state folder with a predictor; by default, a predictor is trained")
    parser.add_argument("--compare", action="store_true", help="answers compare rows with the predictor")
    options = parser.parse_args()
    configure_logs()
    with tempfile.TemporaryDirectory() as folder:
        home = train_if_needed(options.home or Path(folder, "home"))
        url = Settings(home=home).store_url
        with closing(Database(url)) as database:
            database.migrate()
            key = KeyStore(database).create(f"writes-{time.time():.0f}", "write", None)[1]
        with MeasurementStore(url) as store:
            n_before = store.count()
        with serving(home, Path(folder, "log"), options.workers, **ENVIRONMENT) as service:
            figures = run(service, key, options.seconds, compare=options.compare)
        with MeasurementStore(url) as store:
            figures["stored"] = store.count() - n_before
        report(figures)


if __name__ == "__main__":
    main()
