"""Bulk prediction: rows in, rows with predictions and a status out."""
