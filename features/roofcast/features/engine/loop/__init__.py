"""Queueing theory of continuous batching: closed loop, open loop, percentiles."""
