"""Trees: the boosted residual over the calibrated estimate, and where it is trusted."""
