"""Answer of a recommendation: entries, rejections, mixed fleet and Pareto front."""
