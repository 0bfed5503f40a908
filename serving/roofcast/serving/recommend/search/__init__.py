"""Search: configurations, market, load grid, evaluation."""
