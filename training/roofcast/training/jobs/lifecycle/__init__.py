"""Versions of the predictor of training jobs: training set, bundle, quarantine, judgement, retraining."""
