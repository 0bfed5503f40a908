"""Questions over a connection that stays open, and many of them at once from processes of their own."""

from __future__ import annotations

import json
import multiprocessing
import socket
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import h11
import numpy as np

from roofcast.data.units import ms_from_s

Address = tuple[str, int]

QUESTION: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B", "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": 1, "engine": "vllm",
    "n_input_token": 1024, "n_output_token": 256, "concurrency": 16, "statistic": "p95",
}  # fmt: skip

DEMAND: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "workload": {"n_input_token": 1024, "n_output_token": 256, "users": 200},
    "limits": ["ttft:p95<=2s", "tpot:p50<=50ms"],
}

MEASURED: dict[str, Any] = {**QUESTION, "campaign": "soak", "ttft_s": 0.061, "itl_s": 0.0132}


@dataclass(frozen=True)
class Request:
    """One request, ready to be sent.

    Parameters
    ----------
    name
        Of its kind, for reports.
    head
        All headers.
    body
        Blank for none.
    """

    name: str
    head: bytes
    body: bytes = b""

    @classmethod
    def of(cls, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Self:
        """Return the request; a body is sent as JSON, and bytes as they are."""
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        fields = {"host": "bench", **({"content-type": "application/json"} if content else {}), **(headers or {})}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        lines += [f"content-length: {len(content)}", "", ""] if content else ["", ""]
        return cls(f"{method} {path}", "\r\n".join(lines).encode(), content)


PREDICTION = Request.of("POST", "/v1/predictions", {"rows": [QUESTION]})
RECOMMENDATION = Request.of("POST", "/v1/recommendations", DEMAND)


class Connection:
    """A connection that stays open: writes bytes, and lets h11 read only the answer's headers."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection(address, 120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)

    def ask(self, request: Request) -> tuple[int, bytes]:
        """Return the status and the body of the answer."""
        self._socket.sendall(request.head + request.body)
        reader = h11.Connection(h11.CLIENT)
        reader.send(h11.Request(method="GET", target="/", headers=[("host", "bench")]))
        reader.send(h11.EndOfMessage())
        status, pieces = 0, []
        while True:
            event = reader.next_event()
            if event is h11.NEED_DATA:
                got = self._socket.recv(1 << 20)
                if not got:
                    raise ConnectionResetError("the server closed the connection")
                reader.receive_data(got)
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                pieces.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return status, b"".join(pieces)

    def close(self) -> None:
        """Close it."""
        self._socket.close()


def latencies_s(address: Address, request: Request, n: int, n_unmeasured: int = 20) -> np.ndarray:
    """Return how long each of `n` answers took, one after the other, after some that do not count."""
    connection, took = Connection(address), []
    for i in range(n + n_unmeasured):
        start = time.perf_counter()
        status, _ = connection.ask(request)
        if i >= n_unmeasured:
            took.append(time.perf_counter() - start)
        if status != 200:
            raise AssertionError(f"{request.name} is answered {status}")
    connection.close()
    return np.array(took)


def quantiles_ms(took_s: np.ndarray) -> dict[str, float]:
    """Return the median and the 99th percentile, in milliseconds."""
    return {f"p{p}_ms": float(ms_from_s(np.percentile(took_s, p))) for p in (50, 99)}


class Answer(NamedTuple):
    """When one came, after how long, to which kind of request, and with which status; 0 for none."""

    at_s: float
    took_s: float
    kind: int
    status: int


@dataclass(frozen=True)
class Plan:
    """What each of several clients does.

    Parameters
    ----------
    requests
        One of each kind.
    order
        Kinds, in which they are asked again and again.
    until
        Seconds since the epoch.
    pace_s
        Time from request to request, where being late counts as latency; 0 to ask as soon as the answer is there.
    """

    requests: Sequence[Request]
    order: Sequence[int]
    until: float
    pace_s: float


def _client(address: Address, plan: Plan, first: int) -> list[Answer]:
    """Follow the plan from a place in its order on."""
    seen, connection, due, turn = [], Connection(address), time.time(), first
    while time.time() < plan.until:
        kind = plan.order[turn % len(plan.order)]
        turn += 1
        if plan.pace_s:
            time.sleep(max(0.0, due - time.time()))
        start = due if plan.pace_s else time.time()
        try:
            status, _ = connection.ask(plan.requests[kind])
        except OSError:
            status, connection = 0, Connection(address)
        now = time.time()
        seen.append(Answer(now, now - start, kind, status))
        due = max(due + plan.pace_s, now - 10 * plan.pace_s)
    connection.close()
    return seen


def drive(
    address: Address, mix: Sequence[tuple[Request, int]], n_client: int, for_s: float, *, rate: float = 0.0
) -> list[Answer]:
    """Ask from several processes for a while, and return all answers in the order in which they came.

    Parameters
    ----------
    mix
        Requests of each kind, and in which proportion they are asked.
    rate
        Requests a second of all clients together, at an even pace; 0 for as many as go.
    """
    order = np.random.default_rng(0).permutation(
        [kind for kind, (_, weight) in enumerate(mix) for _ in range(weight)]
    )
    with ProcessPoolExecutor(n_client, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(time.sleep, [0.2] * n_client))  # all have started before any asks
        requests = [request for request, _ in mix]
        plan = Plan(requests, order.tolist(), time.time() + for_s, n_client / rate if rate else 0.0)
        parts = [pool.submit(_client, address, plan, client * len(order) // n_client) for client in range(n_client)]
        return sorted(answer for part in parts for answer in part.result())
