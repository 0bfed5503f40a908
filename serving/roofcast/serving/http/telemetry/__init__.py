"""Health, request log, Prometheus metrics, traces."""
