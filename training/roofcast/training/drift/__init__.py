"""Drift: errors of a predictor on new measurements, changes between repeats, and what it has not learnt."""
