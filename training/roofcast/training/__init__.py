"""Fit, judge and keep the predictor."""
