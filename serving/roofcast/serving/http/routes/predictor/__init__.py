"""Versions of the predictor: retraining, promotion, history, the challenger."""
