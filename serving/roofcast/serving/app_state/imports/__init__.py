"""Imports of measurements into the store: warnings, comparison with the champion, report."""
