"""Counts in words."""

from __future__ import annotations


def count_text(n: float, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one.

    Examples
    --------
    >>> count_text(1, "row"), count_text(1200, "row"), count_text(0.5, "user")
    ('1 row', '1,200 rows', '0.5 users')
    """
    return f"{n:,.10g} {noun}{'s' if n != 1 else ''}"
