"""Tables in Markdown."""

from collections.abc import Iterable, Sequence

import pandas as pd


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table.

    Examples
    --------
    >>> print(markdown_table(["a", "b"], [("1", "2")]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def format_number(value: float) -> str:
    """Return a number with three decimals, empty if it is NaN.

    Examples
    --------
    >>> format_number(0.12345), format_number(float("nan"))
    ('0.123', '')
    """
    return "" if pd.isna(value) else f"{value:.3f}"
