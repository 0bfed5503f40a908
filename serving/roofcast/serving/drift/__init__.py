"""Predicted against actual for imported measurements: after an import, over a period, and as gauges."""
