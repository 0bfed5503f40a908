"""Figures as printed: numbers with separators, units, percentages and brackets."""

import math
import re
from collections.abc import Mapping
from typing import Final

N_DIGIT: Final = 6
"""Significant digits of a stored figure."""

_BLANKS: Final = ("", "-", "nan", "none", "todo")
_UNITS: Final = r"%|GiB|GB|MiB|TPS|s|ms|samp/s|token/gpu/sec|min"
_NUMBER: Final = re.compile(
    rf"\[?[~≈]?\s*((?:\d[\d,]*)?\.?\d+(?:[eE][+-]?\d+)?)\*?(?:\]\([^)]*\))?\s*(?:{_UNITS})?", re.ASCII
)
_BRACKETED: Final = re.compile(r"([^()]*)\(([^()]*)\)")


def round_figure(value: float) -> float:
    """Return the value rounded to `N_DIGIT` significant digits.

    Examples
    --------
    >>> round_figure(12.3456789)
    12.3457
    """
    return float(f"{value:.{N_DIGIT}g}")


def number_of(text: str) -> float:
    """Return the number in a published cell, without thousands separators; nan if it is blank.

    Raises `ValueError` if the cell is not a number.

    Examples
    --------
    >>> number_of("33,379.00")
    33379.0
    >>> number_of("TODO")
    nan
    """
    plain = text.strip().replace(",", "")
    return math.nan if plain.lower() in _BLANKS else float(plain)


def number(text: str | None) -> float | None:
    """Return the number in a cell without its unit; None if the cell does not hold exactly one number.

    Examples
    --------
    >>> number("1,002"), number("16.69 GB"), number("[797*](https://example.org)")
    (1002.0, 16.69, 797.0)
    >>> number("n/a") is None, number("1 (16)") is None, number("8.7 5") is None
    (True, True, True)
    """
    match = _NUMBER.fullmatch((text or "").strip())
    return float(match[1].replace(",", "")) if match else None


def ratio(text: str | None) -> float | None:
    """Return a fraction from a percentage, with or without the percent sign.

    Examples
    --------
    >>> ratio("47.5%"), ratio("62.5"), ratio("0.25")
    (0.475, 0.625, 0.25)
    """
    value = number(text)
    if value is None:
        return None
    return value / 100.0 if "%" in str(text) or value > 1.0 else value


def split_brackets(cells: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str] | None]:
    """Split cells such as ``1 (2)`` into the row outside the brackets and, if any cell has brackets, the row inside.

    Examples
    --------
    >>> split_brackets({"TP": "1 (2)", "GBS": "128"})
    ({'TP': '1', 'GBS': '128'}, {'TP': '2', 'GBS': '128'})
    >>> split_brackets({"TP": "1"})
    ({'TP': '1'}, None)
    """
    matches = {name: _BRACKETED.fullmatch(text.strip()) for name, text in cells.items()}
    if not any(matches.values()):
        return dict(cells), None
    outside = {name: match[1].strip() if match else cells[name] for name, match in matches.items()}
    inside = {name: match[2].strip() if match else cells[name] for name, match in matches.items()}
    return outside, inside
