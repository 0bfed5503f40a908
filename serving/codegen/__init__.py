"""Generators of source files; not part of the wheel."""
