"""Fit of kernel parameters on measured latencies; only the coefficients ship."""
