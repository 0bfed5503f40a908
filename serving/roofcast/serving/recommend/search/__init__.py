"""Search: configurations, deployment sizes, load grid, evaluation, mixed fleets."""
