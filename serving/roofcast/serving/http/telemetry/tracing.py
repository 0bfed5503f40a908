"""OpenTelemetry traces, if the environment enables them; otherwise nothing of it is imported."""

# ruff: noqa: PLC0415  (optional dependency)

import logging
import os
from typing import Final

from fastapi import FastAPI

logger = logging.getLogger(__name__)

ENDPOINT_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
UNTRACED: Final = "healthz,readyz,metrics"


def is_enabled() -> bool:
    """Return whether the environment names an endpoint for traces and does not disable them."""
    is_off = (
        os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none"
    )
    return any(os.environ.get(name) for name in ENDPOINT_VARIABLES) and not is_off


def trace(app: FastAPI) -> None:
    """Instrument the application if traces are enabled; OpenTelemetry reads its own variables."""
    if not is_enabled():
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        logger.warning("tracing is enabled but %s is missing: pip install 'roofcast[otel]'", error.name)
        return
    os.environ.setdefault("OTEL_SERVICE_NAME", app.title)
    provider = TracerProvider(resource=Resource.create())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    FastAPIInstrumentor.instrument_app(app, tracer_provider=provider, excluded_urls=UNTRACED)
