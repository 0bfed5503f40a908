"""Kernel times in closed form, with parameters fitted to measured latencies."""
