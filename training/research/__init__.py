"""Experiments and kernel fits; not part of the wheel."""
