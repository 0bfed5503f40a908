"""Learned predictor of training jobs: calibrated core, boosted residual, random effects, intervals, P(fits)."""

from roofcast.training.training_jobs.predictor import TrainingJobPrediction, TrainingJobPredictor
from roofcast.training.training_jobs.shipped import load_shipped_training_predictor

__all__ = ["TrainingJobPrediction", "TrainingJobPredictor", "load_shipped_training_predictor"]
