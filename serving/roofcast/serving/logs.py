"""Quiet logs for programs; a library never configures logging on import."""

from __future__ import annotations

import logging
import os


def configure_logs() -> None:
    """Log our own news, and of the libraries only what is wrong."""
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for noisy in ("alembic", "huey", "mlflow"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
