"""AIPerf and genai-perf."""
