"""Evaluation: metrics, protocols, scoreboard and plots."""
