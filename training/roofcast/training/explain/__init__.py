"""Explanations: feature importance, contributions to a prediction, the most useful next measurement."""
