"""Evaluation: metrics of errors, and plots of a training."""
