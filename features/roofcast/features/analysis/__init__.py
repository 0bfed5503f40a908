"""Analyses of an estimate: time breakdown, what-if sweeps, power."""
