"""Percentiles over means, by queueing theory of continuous batching; finite runs and the startup burst."""
