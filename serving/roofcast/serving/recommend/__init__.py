"""Recommendation of deployments: demand, search, answer, and their request and response."""
