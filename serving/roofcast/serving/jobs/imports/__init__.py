"""Imports of measured training jobs, and the predictor's errors on them."""
