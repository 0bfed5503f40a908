"""HTTP load generator: requests over keep-alive connections, from one or several client processes."""

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

QUERY: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B", "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": 1, "engine": "vllm",
    "n_input_token": 1024, "n_output_token": 256, "concurrency": 16, "statistic": "p95",
}  # fmt: skip

DEMAND: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "workload": {"n_input_token": 1024, "n_output_token": 256, "users": 200},
    "limits": ["ttft:p95<=2s", "tpot:p50<=50ms"],
}

MEASURED: dict[str, Any] = {**QUERY, "campaign": "soak", "ttft_s": 0.061, "itl_s": 0.0132}


@dataclass(frozen=True)
class Request:
    """Serialized HTTP request.

    Parameters
    ----------
    name
        Method and path, for messages.
    head
        Request line and headers.
    body
        Empty if there is none.
    """

    name: str
    head: bytes
    body: bytes = b""

    @classmethod
    def of(cls, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Self:
        """Build the request; bytes are sent unchanged, other bodies as JSON."""
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        fields = {"host": "bench", **({"content-type": "application/json"} if content else {}), **(headers or {})}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        lines += [f"content-length: {len(content)}", "", ""] if content else ["", ""]
        return cls(f"{method} {path}", "\r\n".join(lines).encode(), content)


PREDICTION = Request.of("POST", "/v1/predictions", {"rows": [QUERY]})
RECOMMENDATION = Request.of("POST", "/v1/recommendations", DEMAND)


class Connection:
    """Keep-alive connection: writes raw bytes and reads responses with h11."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection(address, 120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)

    def send(self, request: Request) -> tuple[int, bytes]:
        """Send a request; return status and body of the response."""
        self._socket.sendall(request.head + request.body)
        reader = h11.Connection(h11.CLIENT)
        reader.send(h11.Request(method="GET", target="/", headers=[("host", "bench")]))
        reader.send(h11.EndOfMessage())
        status, pieces = 0, []
        while True:
            event = reader.next_event()
            if event is h11.NEED_DATA:
                received = self._socket.recv(1 << 20)
                if not received:
                    raise ConnectionResetError("the server closed the connection")
                reader.receive_data(received)
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                pieces.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return status, b"".join(pieces)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def latencies_s(address: Address, request: Request, n: int, n_unmeasured: int = 20) -> np.ndarray:
    """Return the latencies of `n` sequential requests, after `n_unmeasured` warm-up requests."""
    connection, latencies = Connection(address), []
    for i in range(n + n_unmeasured):
        start = time.perf_counter()
        status, _ = connection.send(request)
        if i >= n_unmeasured:
            latencies.append(time.perf_counter() - start)
        if status != 200:
            raise AssertionError(f"{request.name} returned status {status}, expected 200")
    connection.close()
    return np.array(latencies)


def quantiles_ms(duration_s: np.ndarray) -> dict[str, float]:
    """Return the median and the 99th percentile, in milliseconds."""
    return {f"p{p}_ms": float(ms_from_s(np.percentile(duration_s, p))) for p in (50, 99)}


class Answer(NamedTuple):
    """Response: time of arrival, latency, kind of request, and status (0 if the connection failed)."""

    at_s: float
    duration_s: float
    kind: int
    status: int


@dataclass(frozen=True)
class Plan:
    """Load of each client process.

    Parameters
    ----------
    requests
        One request per kind.
    order
        Sequence of kinds, repeated.
    until
        End, in seconds since the epoch.
    pace_s
        Interval between requests, with delays counted as latency; 0 to send after each response.
    """

    requests: Sequence[Request]
    order: Sequence[int]
    until: float
    pace_s: float


def _client(address: Address, plan: Plan, first: int) -> list[Answer]:
    """Run the plan, starting at index `first` of its order."""
    answers, connection, due, turn = [], Connection(address), time.time(), first
    while time.time() < plan.until:
        kind = plan.order[turn % len(plan.order)]
        turn += 1
        if plan.pace_s:
            time.sleep(max(0.0, due - time.time()))
        start = due if plan.pace_s else time.time()
        try:
            status, _ = connection.send(plan.requests[kind])
        except OSError:
            status, connection = 0, Connection(address)
        now = time.time()
        answers.append(Answer(now, now - start, kind, status))
        due = max(due + plan.pace_s, now - 10 * plan.pace_s)
    connection.close()
    return answers


def drive(
    address: Address, mix: Sequence[tuple[Request, int]], n_client: int, for_s: float, *, rate: float = 0.0
) -> list[Answer]:
    """Run a mix of requests from several processes; return all answers in order of arrival.

    Parameters
    ----------
    mix
        Requests with their relative frequency.
    rate
        Requests per second of all clients together, evenly paced; 0 for closed loop.
    """
    order = np.random.default_rng(0).permutation(
        [kind for kind, (_, weight) in enumerate(mix) for _ in range(weight)]
    )
    with ProcessPoolExecutor(n_client, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(time.sleep, [0.2] * n_client))  # start all processes before the first request
        requests = [request for request, _ in mix]
        plan = Plan(requests, order.tolist(), time.time() + for_s, n_client / rate if rate else 0.0)
        parts = [pool.submit(_client, address, plan, client * len(order) // n_client) for client in range(n_client)]
        return sorted(answer for part in parts for answer in part.result())
