"""Explanations of an answer: bounds, contributions, plots."""
