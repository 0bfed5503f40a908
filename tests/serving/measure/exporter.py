"""HTTP server with the Prometheus metrics of vLLM or SGLang, whose counters a test moves by `Exporter.serve`."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

VLLM_NAMES = {
    "ttft": "vllm:time_to_first_token_seconds", "itl": "vllm:inter_token_latency_seconds",
    "e2e": "vllm:e2e_request_latency_seconds", "queue": "vllm:request_queue_time_seconds",
    "n_input": "vllm:request_prompt_tokens", "n_output": "vllm:request_generation_tokens",
    "input": "vllm:prompt_tokens", "output": "vllm:generation_tokens", "requests": "vllm:request_success",
    "looked_up": "vllm:prefix_cache_queries", "cached": "vllm:prefix_cache_hits",
    "running": "vllm:num_requests_running", "waiting": "vllm:num_requests_waiting",
}  # fmt: skip
SGLANG_NAMES = {
    "ttft": "sglang:time_to_first_token_seconds", "itl": "sglang:inter_token_latency_seconds",
    "e2e": "sglang:e2e_request_latency_seconds", "input": "sglang:prompt_tokens", "requests": "sglang:num_requests",
    "output": "sglang:generation_tokens", "cached": "sglang:cached_tokens", "running": "sglang:num_running_reqs",
    "waiting": "sglang:num_queue_reqs",
}  # fmt: skip
_HISTOGRAMS = ("ttft", "itl", "e2e", "queue", "n_input", "n_output")
_GAUGES = ("running", "waiting")


class Exporter:
    """Metrics of one server, by the names of its version."""

    def __init__(
        self, names: dict[str, str], model: str = "Qwen/Qwen3-8B", cache: dict[str, str] | None = None
    ) -> None:
        self.names, self.model, self.cache = names, model, cache or {}
        self.answers: dict[str, Any] = {"/v1/models": {"data": [{"id": model, "max_model_len": 32_768}]}}
        self.methods: list[str] = []
        self.is_down = False
        self.n_request_per_scrape = 0
        self.restart()

    def restart(self) -> None:
        """Count from zero, as a restarted server does."""
        self.registry = CollectorRegistry()
        self.metrics: dict[str, Any] = {}
        for key, name in self.names.items():
            kind = Histogram if key in _HISTOGRAMS else Gauge if key in _GAUGES else Counter
            self.metrics[key] = kind(name, key, ["model_name", "engine"], registry=self.registry)
            self.at(key)
        if self.cache:
            gauge = Gauge("vllm:cache_config_info", "cache", [*self.cache], registry=self.registry)
            gauge.labels(**self.cache).set(1)

    def at(self, key: str, engine: str = "0") -> Any:
        """Return the series of a metric."""
        return self.metrics[key].labels(model_name=self.model, engine=engine)

    def serve(self, n: int = 1, *, running: int = 4, waiting: int = 0) -> None:
        """Finish requests of 1,000 tokens, half of them cached, with 101 tokens after 0.2 s, 0.01 s apart."""
        for _ in range(n):
            outcomes = {
                "ttft": 0.2, "e2e": 1.2, "queue": 0.05, "n_input": 1000, "n_output": 101, "input": 1000,
                "output": 101, "requests": 1, "looked_up": 1000, "cached": 500,
            }  # fmt: skip
            for key in outcomes.keys() & self.metrics.keys():
                series = self.at(key)
                (series.observe if key in _HISTOGRAMS else series.inc)(outcomes[key])
            for _ in range(100 if "itl" in self.metrics else 0):
                self.at("itl").observe(0.01)
        for key, value in {"running": running, "waiting": waiting}.items():
            if key in self.metrics:
                self.at(key).set(value)

    @contextmanager
    def running(self) -> Iterator[str]:
        """Answer on a free port while the block runs, and give its URL."""
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                exporter.methods.append(self.command)
                if self.path == "/metrics":
                    if exporter.n_request_per_scrape:
                        exporter.serve(exporter.n_request_per_scrape)
                    status, body = (503, b"") if exporter.is_down else (200, generate_latest(exporter.registry))
                else:
                    status = 200 if self.path in exporter.answers else 404
                    body = json.dumps(exporter.answers.get(self.path, {})).encode()
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
