"""Log configuration of the commands and the service. Nothing is configured on import."""

import logging.config
import os
import sys
from typing import Any, Final, Literal

MLFLOW_DEFAULTS: Final = {
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}
"""Environment variables with which an MLflow server that is down is reported in seconds, not after four minutes."""

AUDIT: Final = "roofcast.audit"
"""Logger of promotions: caller and versions, at any log level."""

LogFormat = Literal["auto", "json", "text"]
LogLevel = Literal["debug", "info", "warning", "error"]

_COMMAND: Final = {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}
_TEXT: Final = {"format": "%(asctime)s %(levelname)s %(name)s [%(correlation_id)s]: %(message)s"}
_REQUEST_ID: Final = {"()": "asgi_correlation_id.CorrelationIdFilter", "default_value": "-"}


def configure_logs() -> None:
    """Configure the logs of a command: lines as text, errors only from libraries."""
    for name, value in MLFLOW_DEFAULTS.items():
        os.environ.setdefault(name, value)
    logging.config.dictConfig(_config(_COMMAND))


def configure_service_logs(chosen: LogFormat, level: LogLevel = "info") -> dict[str, Any]:
    """Configure the logs of the service, each line with its request id; return the configuration for its workers.

    Warnings of libraries are log lines too: standard error holds nothing else.
    """
    is_text = chosen == "text" or (chosen == "auto" and sys.stderr.isatty())
    config = _config(_TEXT if is_text else _json_lines(), {"request": _REQUEST_ID}, level)
    logging.config.dictConfig(config)
    logging.captureWarnings(True)
    return config


def _json_lines() -> dict[str, Any]:
    from pythonjsonlogger.core import RESERVED_ATTRS  # noqa: PLC0415  (only the service writes JSON)

    return {
        "()": "pythonjsonlogger.json.JsonFormatter",
        "fmt": ["levelname", "name", "message", "correlation_id"],
        "timestamp": "time",
        "rename_fields": {"levelname": "level", "name": "logger", "correlation_id": "request_id"},
        "reserved_attrs": [*RESERVED_ATTRS, "color_message"],  # uvicorn's copy of the message with colours
    }


def _config(
    formatter: dict[str, Any], filters: dict[str, Any] | None = None, level: LogLevel = "info"
) -> dict[str, Any]:
    handler = {"class": "logging.StreamHandler", "formatter": "chosen", "filters": list(filters or ())}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": filters or {},
        "formatters": {"chosen": formatter},
        "handlers": {"stderr": handler},
        "root": {"level": level.upper(), "handlers": ["stderr"]},
        "loggers": {
            AUDIT: {"level": "INFO"},
            **{name: {"level": "ERROR"} for name in ("alembic", "asgi_correlation_id", "httpx", "huey", "mlflow")},
        },
    }
