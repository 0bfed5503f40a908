"""Measured rows: their import, what became of them, and what is made of them."""
