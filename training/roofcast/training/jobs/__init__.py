"""Learned predictor of training jobs: core, boosted residual, random effects, intervals, P(fits)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from roofcast.training.jobs.job_predictor import JobPrediction, JobPredictor
    from roofcast.training.lifecycle.shipped import load_shipped_job_predictor

__all__ = ["JobPrediction", "JobPredictor", "load_shipped_job_predictor"]

_MODULE_OF: Final = {
    "JobPrediction": "jobs.job_predictor",
    "JobPredictor": "jobs.job_predictor",
    "load_shipped_job_predictor": "lifecycle.shipped",
}


def __getattr__(name: str) -> Any:
    """Return one of `__all__`; its module is imported now."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"roofcast.training.{_MODULE_OF[name]}"), name)
