"""Fit of the kernels' parameters on measured latencies; only the coefficients ship."""
