"""Stacks of requests: profiles of own runs that predictions are conditioned on, and measured stacks."""
