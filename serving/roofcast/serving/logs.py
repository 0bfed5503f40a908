"""Quiet logs and short waits for programs; a library never configures either on import."""

from __future__ import annotations

import logging
import os
from typing import Final

MLFLOW_DEFAULTS: Final = {
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}
"""A server that is down is told of in seconds, not after the four minutes of MLflow's own defaults."""


def configure_logs() -> None:
    """Log our own news, and of the libraries only what is wrong."""
    for name, value in MLFLOW_DEFAULTS.items():
        os.environ.setdefault(name, value)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for noisy in ("alembic", "huey", "mlflow"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
