"""Fit, judge and keep the predictor.

What others embed is importable from here, and loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from roofcast.training.config import TrainingConfig
    from roofcast.training.explain.contributions import contributions, nearest_measurements
    from roofcast.training.explain.measure_next import rank_measurements
    from roofcast.training.explain.measured_points import MeasuredPoints
    from roofcast.training.learner.prediction import Prediction
    from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor
    from roofcast.training.learner.ratio_model import RatioModel
    from roofcast.training.lifecycle.bundles.bundle import ModelBundle, load_bundle

__all__ = [
    "CalibrationPoints",
    "MeasuredPoints",
    "ModelBundle",
    "Prediction",
    "RatioModel",
    "RoofcastPredictor",
    "TrainingConfig",
    "contributions",
    "load_bundle",
    "nearest_measurements",
    "rank_measurements",
]

_MODULE_OF: Final = {
    "MeasuredPoints": "explain.measured_points",
    "ModelBundle": "lifecycle.bundles.bundle",
    "RatioModel": "learner.ratio_model",
    "Prediction": "learner.prediction",
    "CalibrationPoints": "learner.predictor",
    "RoofcastPredictor": "learner.predictor",
    "TrainingConfig": "config",
    "contributions": "explain.contributions",
    "load_bundle": "lifecycle.bundles.bundle",
    "nearest_measurements": "explain.contributions",
    "rank_measurements": "explain.measure_next",
}


def __getattr__(name: str) -> Any:
    """Return one of `__all__`; its module is imported now."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
