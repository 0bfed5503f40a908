"""Conversion of collected facts into the tables of the catalogue."""
