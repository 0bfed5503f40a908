"""LLM-Pilot."""
