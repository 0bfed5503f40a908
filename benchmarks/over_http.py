"""Speed and memory of the service over HTTP; prints a table, then JSON on the last line.

    python -m benchmarks.over_http [--home FOLDER] [--peer peer/bin/python]

Servers with one and with two worker processes run on loopback; the clients are processes on the same machine and
share its cores. The log level is warning. (The module is not named `http`, which would shadow the standard library in
scripts.)
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.echo import running_echo
from benchmarks.load import (
    PREDICTION,
    QUERY,
    RECOMMENDATION,
    Connection,
    Request,
    drive,
    latencies_s,
    quantiles_ms,
)
from roofcast.data.measurements.target import INFERENCE
from roofcast.data.units import ms_from_s
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service
from roofcast.serving.logs import configure_logs
from tests.attack.service import Service, serving

N_PREDICTION: Final = 500
N_RECOMMENDATION: Final = 150
N_TURN: Final = 10
"""Alternating turns in the comparison of two servers."""

N_BULK_ROW: Final = 20_000
N_BULK: Final = 5
SUSTAINED_S: Final = 15.0
SETTLE_S: Final = 8.0
"""Wait after a start until the retraining process has started."""

PEER_SCRIPT: Final = Path(__file__).parent / "peers" / "aiconfigurator_speed.py"
MB: Final = 1e6

ENVIRONMENT: Final = {"ROOFCAST_LOG_LEVEL": "warning", "PYTHONDONTWRITEBYTECODE": ""}
"""Environment of the servers; bytecode caching is on, as in an installation."""


def bulk_rows(n_row: int) -> list[dict[str, object]]:
    """Return distinct random queries, as of a sweep."""
    pick = np.random.default_rng(0)
    sizes = zip(
        pick.integers(16, 4000, n_row), pick.integers(8, 500, n_row), pick.choice([1, 8, 64], n_row), strict=True
    )
    return [
        {**QUERY, "n_input_token": int(n_in), "n_output_token": int(n_out), "concurrency": int(n_user)}
        for n_in, n_out, n_user in sizes
    ]


def bulk_rows_per_second(service: Service) -> float:
    """Return the rows per second of one NDJSON request, read to the end."""
    text = "".join(json.dumps(row) + "\n" for row in bulk_rows(N_BULK_ROW)).encode()
    request = Request.of("POST", "/v1/predictions", text, {"content-type": "application/x-ndjson"})
    connection, durations = Connection(service.address), []
    for _ in range(N_BULK):
        start = time.perf_counter()
        status, answer = connection.send(request)
        durations.append(time.perf_counter() - start)
        n_line = answer.count(b"\n")
        if status != 200 or n_line < N_BULK_ROW:
            raise AssertionError(
                f"bulk prediction returned status {status} with {n_line} lines, expected 200 with {N_BULK_ROW}"
            )
    return float(N_BULK_ROW / np.median(durations))


def measure_one_worker(service: Service, home: Path) -> dict[str, float]:
    """Return the figures of one worker process with one sequential client."""
    connection = Connection(service.address)
    answer = json.loads(connection.send(RECOMMENDATION)[1])
    connection.close()
    predictions = latencies_s(service.address, PREDICTION, N_PREDICTION)
    recommendations = latencies_s(service.address, RECOMMENDATION, N_RECOMMENDATION)
    return {
        **{f"prediction_{name}": value for name, value in quantiles_ms(predictions).items()},
        **{f"recommendation_{name}": value for name, value in quantiles_ms(recommendations).items()},
        "candidates": answer["n_candidate"],
        "single_over_echo": single_over_echo(service, home),
        "bulk_rows_per_second": bulk_rows_per_second(service),
    }


def single_over_echo(service: Service, home: Path) -> float:
    """Return the median latency of one prediction divided by that of a bare echo with the same tree evaluations."""
    with running_echo(home) as address:
        echo = Request.of("POST", "/", {"rows": [QUERY]})
        seconds: dict[str, list[float]] = {"prediction": [], "echo": []}
        for _ in range(N_TURN):
            seconds["prediction"].extend(latencies_s(service.address, PREDICTION, N_PREDICTION // N_TURN))
            seconds["echo"].extend(latencies_s(address, echo, N_PREDICTION // N_TURN))
    return float(np.median(seconds["prediction"]) / np.median(seconds["echo"]))


def measure_two_workers(service: Service) -> dict[str, float]:
    """Return the figures of two worker processes with four concurrent clients."""
    answers = drive(service.address, [(RECOMMENDATION, 1)], 4, SUSTAINED_S)
    errors = {answer.status for answer in answers} - {200}
    if errors:
        raise AssertionError(f"recommendations returned status {errors}, expected 200")
    return {"recommendation_per_s_2_workers": len(answers) / SUSTAINED_S}


def measure(home: Path, logs: Path) -> dict[str, float]:
    """Return the figures; names end in units."""
    figures: dict[str, float] = {}
    for n_worker, measure_workers in (
        (1, lambda service: measure_one_worker(service, home)),
        (2, measure_two_workers),
    ):
        start = time.perf_counter()
        with serving(home, logs / f"{n_worker}.log", n_worker, **ENVIRONMENT) as service:
            figures[f"ready_s_{n_worker}_workers"] = time.perf_counter() - start
            time.sleep(SETTLE_S)
            figures |= measure_workers(service)
            figures[f"memory_mb_a_worker_of_{n_worker}"] = max(service.memory_byte()) / MB
    return figures


def compare_with_peer(figures: dict[str, float], python: Path) -> dict[str, float]:
    """Return aiconfigurator's times on this machine, and the speed-up over them."""
    command = [str(python), str(PEER_SCRIPT)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  (a path given by the caller)
    peer = json.loads(process.stdout.splitlines()[-1])
    estimate_ms, sweep_ms = ms_from_s(peer["cli_estimate_s"]), ms_from_s(peer["cli_default_s"])
    return {
        "aiconfigurator_estimate_ms": estimate_ms,
        "aiconfigurator_sweep_ms": sweep_ms,
        "times_faster_than_its_estimate": estimate_ms / figures["prediction_p50_ms"],
        "times_faster_than_its_sweep": sweep_ms / figures["recommendation_p50_ms"],
    }


def cpu_s(pid: int) -> float:
    """Return the processor time of a process and its children (Linux)."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") + sum(cpu_s(int(child)) for child in children)


def train_if_needed(home: Path) -> Path:
    """Return the state folder; train a predictor if none is active."""
    service = build_service(Settings(home=home))
    if not service.champions[INFERENCE].refresh():
        service.retrain()
        service.champions[INFERENCE].refresh()
    service.close()
    return home


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, help="state folder with a predictor; by default, a predictor is trained")
    parser.add_argument("--peer", type=Path, help="Python executable of an environment with aiconfigurator")
    options = parser.parse_args()
    configure_logs()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(train_if_needed(options.home or Path(folder, "home")), Path(folder))
    if options.peer:
        figures |= compare_with_peer(figures, options.peer)
    report(figures)


def report(figures: dict[str, float]) -> None:
    """Print a table, then JSON on the last line."""
    for name, value in figures.items():
        print(f"{name:36} {value:12.4g}")
    print(json.dumps({name: round(value, 4) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
