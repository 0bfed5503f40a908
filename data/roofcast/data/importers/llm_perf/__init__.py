"""optimum-benchmark, as the LLM-Perf leaderboard publishes it."""
