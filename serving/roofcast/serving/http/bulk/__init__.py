"""Bulk prediction: many rows in one request, read, answered and written chunk by chunk."""
