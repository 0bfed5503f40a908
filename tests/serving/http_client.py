"""A client that talks to an application in this process."""

import datetime as dt
import json
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI

from roofcast.data.store.api_keys import KeyStore, Scope
from roofcast.serving.composition import Service


class Run:
    """Runs the command line; a call returns its status, standard output and standard error."""

    def __init__(self, call: Callable[..., tuple[int, str, str]]) -> None:
        self._call = call

    def __call__(self, *arguments: str | Path) -> tuple[int, str, str]:
        return self._call(*arguments)

    def ok(self, *arguments: str | Path) -> str:
        """Return the standard output of a command that succeeds."""
        status, out, err = self(*arguments)
        assert status == 0, err
        return out

    def json(self, *arguments: str | Path) -> Any:
        """Return what a command that succeeds prints as JSON."""
        return json.loads(self.ok(*arguments, "--json"))

    def error(self, *arguments: str | Path, status: int = 2) -> str:
        """Return the standard error, on one line, of a command that fails and prints nothing else."""
        returned, out, err = self(*arguments)
        assert (returned, out) == (status, ""), err
        assert "Traceback" not in err
        return " ".join(err.split())


MODEL = "meta-llama/Llama-3.1-8B"
ACCELERATOR = "nvidia-a100-pcie-80gb"
CONFIG: dict[str, Any] = {
    "model_type": "qwen3", "hidden_size": 5120, "intermediate_size": 17408, "num_hidden_layers": 40,
    "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
    "torch_dtype": "bfloat16",
}  # fmt: skip
"""Configuration of a model without measurements."""


class Client:
    """Sends requests one at a time; an exception in the application becomes status 500.

    It sends an API key of the scope admin by default.
    """

    def __init__(self, app: FastAPI, portal: BlockingPortal) -> None:
        self.app = app
        self._portal = portal
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://test")
        self.use_key(self.make_key("admin"))

    @property
    def keys(self) -> KeyStore:
        return KeyStore(self.service.store.database)

    def make_key(self, scope: Scope, lifetime: dt.timedelta | None = None, name: str = "") -> str:
        return self.keys.create(name or uuid.uuid4().hex, scope, lifetime)[1]

    def use_key(self, secret: str | None) -> None:
        """Send this key in later requests; None to send none."""
        self._client.headers.pop("authorization", None)
        if secret is not None:
            self._client.headers["authorization"] = f"Bearer {secret}"

    @property
    def service(self) -> Service:
        service: Service = self.app.state.service
        return service

    def run(self, job: Callable[[], Awaitable[None]]) -> None:
        """Run a coroutine in the application's event loop."""
        self._portal.call(job)

    def send(
        self, method: str, path: str, content: bytes | str | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        async def request() -> httpx.Response:
            return await self._client.request(method, path, content=content, headers=headers)

        return self._portal.call(request)

    def get(self, path: str) -> httpx.Response:
        return self.send("GET", path)

    def post(self, path: str, body: Any = None) -> httpx.Response:
        """Post JSON; NaN, infinities and lone surrogates are written as Python writes them."""
        return self.post_text(path, json.dumps(body))

    def answer(self, path: str, body: Any = None, status: int = 200) -> Any:
        """Return the JSON of the response to a post, and check its status."""
        response = self.post(path, body)
        assert response.status_code == status, response.text
        return response.json()

    def post_text(self, path: str, text: str | bytes) -> httpx.Response:
        return self.send("POST", path, text, {"content-type": "application/json"})


@contextmanager
def running(app: FastAPI) -> Iterator[Client]:
    """Start the application, yield a client of it, and stop it."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(app.router.lifespan_context(app)):
        yield Client(app, portal)


def a_question(**changes: Any) -> dict[str, Any]:
    """Return a row of a prediction request."""
    row = {"model": MODEL, "accelerator": ACCELERATOR, "n_input_token": 120, "n_output_token": 20, "concurrency": 16}
    return row | changes


def a_full_question(**changes: Any) -> dict[str, Any]:
    """Return a row with a value in every column that can be given together."""
    configuration = {
        "n_accelerator": 2, "engine": "vllm", "engine_version": "0.11.0", "weight_precision": "int8",
        "kv_precision": "bf16", "tp": 1, "pp": 1, "dp": 1, "ep": 1, "request_rate": None, "statistic": "p50",
        "flash_attention": True, "load": "closed_loop", "n_node": 1, "cp": 1, "moe_tp": 1,
        "n_prefill_accelerator": 1, "n_decode_accelerator": 1, "activation_precision": "bf16", "lora_rank": 16,
        "speculation": "eagle", "n_speculative_token": 3, "chain_acceptance_ratio": 0.6,
        "draft_acceptance_ratio": 0.4, "acceptance_length": 2.2, "prefix_caching": "on",
        "weight_bit": 8.5, "gpu_memory_utilization": 0.9, "n_gpu_layer": 99, "n_cpu_moe": 0, "cpu_offload_gib": 0,
        "prefix_cache_ratio": 0.3, "chunked_prefill": "on", "chunk_size_token": 8192, "max_num_seqs": 256,
        "max_context_token": 8192, "graphs": "on", "peer_to_peer": "on", "link_bandwidth_byte_per_s": 3e11,
        "power_limit_w": 300, "poll_interval_step": 1, "stream_interval_token": 1, "attention_dp_wait_step": 0,
        "batch_wait_step": 0, "length_variation": 0.5, "n_request": 160, "date": "2025-10",
    }  # fmt: skip
    return a_question() | configuration | changes


def a_measurement(**changes: Any) -> dict[str, Any]:
    """Return a row of measurements."""
    outcome = {"n_accelerator": 1, "engine": "vllm", "statistic": "p50", "ttft_s": 0.061, "itl_s": 0.0132}
    return a_question(campaign="nightly") | outcome | changes


def a_demand(**changes: Any) -> dict[str, Any]:
    """Return a recommendation request for a model without measurements."""
    request = {
        "model": {"name": "my-14b", "config": CONFIG},
        "workload": {"n_input_token": 120, "n_output_token": 20, "users": 200},
        "limits": ["nttft:p50<=100ms", "itl:p50<=50ms"],
    }
    return request | changes


def problem_of(response: httpx.Response, status: int) -> dict[str, Any]:
    """Return the problem details of a response, and check its status and form."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert problem["status"] == status
    assert problem["type"].startswith("urn:roofcast:problem:")
    assert problem["title"]
    assert problem["detail"]
    return problem
