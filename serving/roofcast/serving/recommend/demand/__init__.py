"""Demand and constraints: limits, workload presets, inventory."""
