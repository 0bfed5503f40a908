import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from fastapi import FastAPI
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.app import create_app
from roofcast.serving.http.telemetry.tracing import is_enabled, trace
from tests.conditions import wait_until
from tests.serving.http_client import running


class Collector(BaseHTTPRequestHandler):
    """Fake collector that stores the traces it receives."""

    received: list[ExportTraceServiceRequest]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.received.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ExportTraceServiceRequest]]:
    Collector.received = []
    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        yield Collector.received
        server.shutdown()


def list_span_names(received: list[ExportTraceServiceRequest]) -> list[str]:
    return [
        span.name
        for request in list(received)
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def test_requests_are_traced_if_an_endpoint_is_set(collector: list[ExportTraceServiceRequest], home: Path) -> None:
    with running(create_app(Settings(home=home, poll_s=3600))) as client:
        client.get("/healthz")
        client.get("/v1/retrainings/none")
        wait_until(lambda: "GET /v1/retrainings/{retraining_id}" in list_span_names(collector))
    assert not [name for name in list_span_names(collector) if "healthz" in name]
    names = {a.key: a.value.string_value for a in collector[0].resource_spans[0].resource.attributes}
    assert names["service.name"] == "roofcast"


@pytest.mark.parametrize("off", [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")])
def test_tracing_can_be_disabled(monkeypatch: pytest.MonkeyPatch, off: tuple[str, str]) -> None:
    assert not is_enabled()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1")
    assert is_enabled()
    monkeypatch.setenv(*off)
    assert not is_enabled()


def test_tracing_without_its_extra_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation.fastapi", None)
    trace(FastAPI())
    assert caplog.text == ""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    trace(FastAPI())
    assert "pip install 'roofcast[otel]'" in caplog.text
