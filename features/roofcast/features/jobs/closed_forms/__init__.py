"""Closed forms of what no shipped row measures: worked arithmetic, with no claim of accuracy."""
