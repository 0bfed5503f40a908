"""Large numbers with suffixes on the command line."""

import pytest
import typer

from roofcast.serving.cli.arguments.amounts import parse_amount


@pytest.mark.parametrize(
    ("text", "value"),
    [("10m", 1e7), ("1.5B", 1.5e9), ("2g", 2e9), ("32K", 32e3), ("2e7", 2e7), ("1_000", 1e3), ("1t", 1e12)],
)
def test_amounts_take_decimal_suffixes(text: str, value: float) -> None:
    assert parse_amount(text) == value


@pytest.mark.parametrize("text", ["10q", "m", "", "1,5m", "10 mm", "nan"])
def test_another_form_names_those_that_are_read(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"20000000, 2e7 or 20m; suffixes are k"):
        parse_amount(text)
