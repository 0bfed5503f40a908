"""The search: candidates, market, load grid, evaluation."""
