"""GuideLLM."""
