"""Feature importance, contributions, the most useful next measurement."""
