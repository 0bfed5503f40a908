"""The shipped predictor of training jobs."""

from __future__ import annotations

import functools

from roofcast.data.training_campaigns import load_training_campaigns
from roofcast.training.training_jobs.predictor import TrainingJobPredictor


@functools.cache
def load_shipped_training_predictor() -> TrainingJobPredictor:
    """Return the predictor that was fitted to the shipped training campaigns; cached."""
    return TrainingJobPredictor().fit(load_training_campaigns())
