"""Validity: engine support, splits, context, memory capacity, and physical bounds of measurements."""
