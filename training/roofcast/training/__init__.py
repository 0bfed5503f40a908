"""Fit, judge and keep the predictor.

What others embed is importable from here, and loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from roofcast.training.bundle import ModelBundle, load_bundle
    from roofcast.training.config import TrainingConfig
    from roofcast.training.explanations import Anchors, contributions, nearest_measurements
    from roofcast.training.measure_next import rank_measurements
    from roofcast.training.point import PointPredictor
    from roofcast.training.predictor import Prediction, References, RoofcastPredictor

__all__ = [
    "Anchors",
    "ModelBundle",
    "PointPredictor",
    "Prediction",
    "References",
    "RoofcastPredictor",
    "TrainingConfig",
    "contributions",
    "load_bundle",
    "nearest_measurements",
    "rank_measurements",
]

_MODULE_OF: Final = {
    "Anchors": "explanations",
    "ModelBundle": "bundle",
    "PointPredictor": "point",
    "Prediction": "predictor",
    "References": "predictor",
    "RoofcastPredictor": "predictor",
    "TrainingConfig": "config",
    "contributions": "explanations",
    "load_bundle": "bundle",
    "nearest_measurements": "explanations",
    "rank_measurements": "measure_next",
}


def __getattr__(name: str) -> Any:
    """Return one of `__all__`; its module is imported now."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
