"""Conversion of a price in another currency to US dollars."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from roofcast.data.errors import InputError


def price_in_usd(price: Decimal, currency: str, rates: Mapping[str, Decimal]) -> tuple[Decimal, str]:
    """Return a price in US dollars, and a note of the rate for the offer's source; empty for a price in dollars.

    Parameters
    ----------
    rates
        US dollars for one unit of a currency.

    Raises
    ------
    InputError
        If there is no rate for the currency.

    Examples
    --------
    >>> price_in_usd(Decimal(10), "EUR", {"EUR": Decimal("1.1")})
    (Decimal('11.0'), '10 EUR at 1.1 USD')
    """
    if currency == "USD":
        return price, ""
    rate = parse_amount(f"rate of {currency}", rates.get(currency))
    return price * rate, f"{price} {currency} at {rate} USD"


def parse_amount(name: str, value: object) -> Decimal:
    """Return a plain decimal number.

    Raises
    ------
    InputError
        If the value is missing or no plain number; names it.
    """
    if value is None:
        raise InputError(name, "is missing")
    text = str(value).strip()
    if not re.fullmatch(r"\d{1,12}(\.\d{1,30})?", text):
        raise InputError(name, f"must be a plain number such as 12.5, got {text[:60]!r}")
    return Decimal(text)
