"""Texts and tables of answers for a terminal of 80 columns."""
