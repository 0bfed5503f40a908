"""Large numbers with suffixes."""

import re
from typing import Final

import typer

_FACTORS: Final = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
_AMOUNT: Final = re.compile(r"([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)([kmbgt]?)", re.ASCII | re.IGNORECASE)


def parse_amount(text: str | float) -> float:
    """Return a number with an optional decimal suffix: k, m, b or g, t.

    Raises `typer.BadParameter` if the text has another form.

    Examples
    --------
    >>> parse_amount("10m"), parse_amount("1.5B"), parse_amount("2e7"), parse_amount("1_000")
    (10000000.0, 1500000000.0, 20000000.0, 1000.0)
    """
    match = _AMOUNT.fullmatch(str(text).strip())
    if match is None:
        forms = (
            "a number such as 20000000, 2e7 or 20m; suffixes are k (thousand), m (million), b or g (1e9), t (1e12)"
        )
        raise typer.BadParameter(f"must be {forms}, got {text!r}")
    number, suffix = match.groups()
    return float(number) * _FACTORS[suffix.lower()]


def expand_amount(text: str) -> str:
    """Return the number of an amount as text without suffix; other texts as they are, for the check of their field.

    Examples
    --------
    >>> expand_amount("4k"), expand_amount("0.5"), expand_amount("fast")
    ('4000', '0.5', 'fast')
    """
    return f"{parse_amount(text):.15g}" if _AMOUNT.fullmatch(text.strip()) else text
