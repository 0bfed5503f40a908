"""Quantiles of latency from the estimated means, and the solver of the loop."""
