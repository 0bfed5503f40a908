"""Metrics, protocols, scoreboard and plots."""
