"""Traces, when an environment variable of OpenTelemetry asks for them; nothing of it is imported otherwise."""

# ruff: noqa: PLC0415  (an extra that few install)

from __future__ import annotations

import logging
import os
from typing import Final

from fastapi import FastAPI

logger = logging.getLogger(__name__)

ASKING: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
UNTRACED: Final = "healthz,readyz,metrics"


def is_asked_for() -> bool:
    """Return whether the environment says where traces go, and does not switch them off."""
    is_off = (
        os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none"
    )
    return any(os.environ.get(name) for name in ASKING) and not is_off


def trace(app: FastAPI) -> None:
    """Send a trace of each request if the environment asks for it; OpenTelemetry reads its own variables."""
    if not is_asked_for():
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        logger.warning("traces are asked for, but %s is not installed: pip install 'roofcast[otel]'", error.name)
        return
    os.environ.setdefault("OTEL_SERVICE_NAME", app.title)
    provider = TracerProvider(resource=Resource.create())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    FastAPIInstrumentor.instrument_app(app, tracer_provider=provider, excluded_urls=UNTRACED)
