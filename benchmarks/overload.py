"""Overload: predictions at a multiple of the capacity, in an open loop; prints JSON on the last line.

    python -m benchmarks.overload --minutes 10 --factor 2 [--home FOLDER] [--workers 1]

First closed loops of 2 to 16 clients measure the capacity: the greatest rate counts. Then requests are sent when they
are due, whatever the answers; the latency of each counts from its due time. Wanted: at least 90 % of the capacity is
served, the 99th percentile of the served below one second, all others refused (503) within one second. On a shared
machine compare the requests served per second of processor time of the service.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.load import PREDICTION, Address, Answer, Request, drive
from benchmarks.over_http import ENVIRONMENT, SETTLE_S, cpu_s, report, train_if_needed
from roofcast.data.units import ms_from_s
from roofcast.serving.logs import configure_logs
from tests.attack.service import Service, serving

N_CLIENTS: Final = (2, 4, 8, 16)
CAPACITY_S: Final = 15.0
MAX_CONNECTION: Final = 2000
PATIENCE_S: Final = 60.0
MINUTE_S: Final = 60.0
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Sender(asyncio.Protocol):
    """Keep-alive connection that sends one request at a time and reads the status of its response.

    Parameters
    ----------
    idle
        Connections that wait for a request; this one returns to it after each response.
    """

    def __init__(self, idle: deque[Sender], answers: list[Answer]) -> None:
        self._idle = idle
        self._answers = answers
        self._received = bytearray()
        self._due_s = 0.0
        self._is_busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport

    def send(self, request: Request, due_s: float) -> None:
        """Send a request that was due at a time of `time.time`."""
        self._due_s, self._is_busy = due_s, True
        self._transport.write(request.head + request.body)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        """Record the answer when it is complete."""
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head) if end else None
        if length and len(body) >= int(length[1]):
            self._record(int(head[9:12]))
            self._received.clear()
            self._idle.append(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Record an unanswered request with the status 0."""
        del exc
        if self._is_busy:
            self._record(0)
        elif self in self._idle:
            self._idle.remove(self)

    def _record(self, status: int) -> None:
        now = time.time()
        self._answers.append(Answer(now, now - self._due_s, 0, status))
        self._is_busy = False


async def send_at_rate(address: Address, request: Request, rate: float, for_s: float) -> tuple[list[Answer], int]:
    """Send requests evenly spaced; return the answers, and the number of requests that found no connection."""
    answers: list[Answer] = []
    idle: deque[Sender] = deque()
    loop, n_connection, n_unsent, n_due = asyncio.get_running_loop(), 0, 0, int(rate * for_s)
    start_s = time.time()
    for i in range(n_due):
        due_s = start_s + i / rate
        await asyncio.sleep(max(0.0, due_s - time.time()))
        if not idle and n_connection < MAX_CONNECTION:
            _, sender = await loop.create_connection(lambda: Sender(idle, answers), *address)
            n_connection += 1
            sender.send(request, due_s)
        elif idle:
            idle.popleft().send(request, due_s)
        else:
            n_unsent += 1
    deadline_s = time.time() + PATIENCE_S
    while len(answers) < n_due - n_unsent and time.time() < deadline_s:
        await asyncio.sleep(0.1)
    return answers, n_due - len(answers)


def served_by_minute(answers: list[Answer]) -> list[float]:
    """Return the served requests per second of each whole minute."""
    served_s = [answer.at_s for answer in answers if answer.status == 200]
    n_minute = int((max(served_s) - min(served_s)) / MINUTE_S)
    edges_s = min(served_s) + MINUTE_S * np.arange(n_minute + 1)
    return (np.histogram(served_s, edges_s)[0] / MINUTE_S).tolist() if n_minute else []


def figures_of(answers: list[Answer], n_unanswered: int, capacity: float, for_s: float) -> dict[str, Any]:
    """Return the figures of an overload."""
    by_status = Counter(answer.status for answer in answers)
    served = np.array([answer.duration_s for answer in answers if answer.status == 200])
    refused = np.array([answer.duration_s for answer in answers if answer.status == 503])
    return {
        "capacity_per_s": capacity,
        "served_per_s": len(served) / for_s,
        "served_of_capacity": len(served) / for_s / capacity,
        **{f"served_per_s_in_minute_{i}": rate for i, rate in enumerate(served_by_minute(answers), start=1)},
        "served_p50_ms": float(ms_from_s(np.percentile(served, 50))),
        "served_p99_ms": float(ms_from_s(np.percentile(served, 99))),
        "refused": len(refused),
        "refused_p99_ms": float(ms_from_s(np.percentile(refused, 99))) if len(refused) else 0.0,
        "refused_max_ms": float(ms_from_s(refused.max())) if len(refused) else 0.0,
        "refused_over_1_s": int((refused > 1.0).sum()),
        "other_answers": sum(n for status, n in by_status.items() if status not in {200, 503}),
        "unanswered": n_unanswered,
    }


def closed_loop_rate(service: Service, n_client: int) -> float:
    """Return the served requests per second of clients that each wait for an answer before the next request."""
    answers = drive(service.address, [(PREDICTION, 1)], n_client, CAPACITY_S)
    return sum(answer.status == 200 for answer in answers) / CAPACITY_S


def run(service: Service, minutes: float, factor: float) -> dict[str, Any]:
    """Measure the capacity, send a multiple of it, and return the figures."""
    time.sleep(SETTLE_S)
    drive(service.address, [(PREDICTION, 1)], N_CLIENTS[0], 5.0)
    start_cpu_s = cpu_s(service.process.pid)
    rates = {n_client: closed_loop_rate(service, n_client) for n_client in N_CLIENTS}
    full_cpu_s = cpu_s(service.process.pid)
    capacity = max(rates.values())
    for_s = minutes * MINUTE_S
    answers, n_unanswered = asyncio.run(send_at_rate(service.address, PREDICTION, factor * capacity, for_s))
    figures = figures_of(answers, n_unanswered, capacity, for_s)
    return {
        "minutes": minutes,
        "factor": factor,
        **{f"closed_loop_of_{n_client}_per_s": rate for n_client, rate in rates.items()},
        **figures,
        "capacity_per_cpu_s": sum(rates.values()) * CAPACITY_S / (full_cpu_s - start_cpu_s),
        "served_per_cpu_s": figures["served_per_s"] * for_s / (cpu_s(service.process.pid) - full_cpu_s),
    }


def main() -> None:
    """Run the overload and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--factor", type=float, default=2.0, help="multiple of the capacity")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--home", type=Path, help="state folder with a predictor; by default, a predictor is trained")
    options = parser.parse_args()
    configure_logs()
    with tempfile.TemporaryDirectory() as folder:
        home = train_if_needed(options.home or Path(folder, "home"))
        with serving(home, Path(folder, "log"), options.workers, **ENVIRONMENT) as service:
            report(run(service, options.minutes, options.factor))


if __name__ == "__main__":
    main()
