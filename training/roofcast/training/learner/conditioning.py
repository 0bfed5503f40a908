"""Predictors made from a fitted one for a single request: of some metrics, and knowing reference measurements."""

from __future__ import annotations

import copy
from collections.abc import Collection

from roofcast.training.learner.predictor import References, RoofcastPredictor
from roofcast.training.learner.reconciliation import FOLLOWERS, SOURCES


def narrowed(predictor: RoofcastPredictor, metrics: Collection[str]) -> RoofcastPredictor:
    """Return the predictor of some metrics alone, which answers sooner and promises what these can.

    Reference measurements of the others still count.

    Parameters
    ----------
    predictor
        Fitted.
    metrics
        To keep, with those that they follow from; those that it does not predict are left out.
    """
    some = copy.copy(predictor)
    some.whole = predictor
    kept = {*metrics, *(SOURCES if any(metric in FOLLOWERS for metric in metrics) else ())}
    some.metrics_ = tuple(metric for metric in predictor.metrics_ if metric in kept)
    some.uncertainty_ = {metric: predictor.uncertainty_[metric] for metric in some.metrics_}
    return some


def conditioned(predictor: RoofcastPredictor, references: References | None) -> RoofcastPredictor:
    """Return the predictor that knows reference measurements in every answer; itself if there are none."""
    if references is None:
        return predictor
    told = copy.copy(predictor)
    told.uncertainty_, told.whole = predictor.known(references), None
    return told
