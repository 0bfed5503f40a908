"""A user's offer file is read completely or refused with file, line and field."""

import contextlib
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.prices import offer_file
from roofcast.data.prices.offer_file import (
    MAX_OFFER_FILE_BYTE,
    OFFER_FIELDS,
    load_offer_file,
    offer_from_row,
)
from roofcast.data.specs import Offer
from roofcast.data.toml_file import MAX_TOML_BYTE
from tests.effort import n_example

CATALOG = load_catalog()
HEADER = "provider,instance_type,accelerator,n_accelerator,price_per_h,currency,as_of,host_memory_gib"
ROW = "mycloud,big,H100,8,20.40,,2026-11-01,1024"

TOML = """
[[offer]]
provider = "mycloud"
instance_type = "big"
accelerator = "L4"
price_per_h = 0.71
as_of = 2026-11-01
pricing = "reserved_3y"

[[offer]]
provider = "mycloud"
instance_type = "small"
accelerator = "t4"
price_per_h = 1
currency = "EUR"
as_of = "2026-11-01"
"""


def load(tmp_path: Path, text: str, name: str = "mine.csv", **rates: str) -> list[Offer]:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return load_offer_file(tmp_path / name, CATALOG, {currency: Decimal(rate) for currency, rate in rates.items()})


def test_a_csv_file_is_read(tmp_path: Path) -> None:
    (offer,) = load(tmp_path, f"{HEADER}\n{ROW}\n\n")

    assert offer.id == "mycloud/unknown/big/on_demand"
    assert (offer.accelerator, offer.n_accelerator) == ("nvidia-h100-sxm-80gb", 8)
    assert (offer.price_usd_per_h, offer.memory_byte) == (Decimal("20.40"), 1024 * 2**30)
    assert (offer.source, offer.listed_currency) == ("mine.csv", "USD")


def test_a_toml_file_is_read_with_a_rate(tmp_path: Path) -> None:
    first, second = load(tmp_path, TOML, "mine.toml", EUR="1.17")

    assert (first.pricing, first.price_usd_per_h) == ("reserved_3y", Decimal("0.71"))
    assert second.price_usd_per_h == Decimal("1.17")
    assert (second.listed_price_per_h, second.listed_currency) == (Decimal(1), "EUR")
    assert second.source == "mine.toml; 1 EUR at 1.17 USD"


def test_a_currency_without_a_rate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"mine\.toml, line 2: rate of EUR: is missing"):
        load(tmp_path, TOML, "mine.toml")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("mycloud,big,H100,8,-1,,2026-11-01,", "line 2: price_per_h: must not begin like a formula"),
        ("mycloud,big,H100,8,NaN,,2026-11-01,", "line 2: price_per_h: must be a plain number"),
        ("mycloud,big,H100,8,1e3,,2026-11-01,", "line 2: price_per_h: must be a plain number"),
        ("mycloud,big,H100,8,2000000,,2026-11-01,", "line 2: price_usd_per_h: input should be less than"),
        (
            "mycloud,big,h100-sxm-90gb,8,1,,2026-11-01,",
            "line 2: accelerator: no 'h100-sxm-90gb' is known; did you mean",
        ),
        ("=cmd(),big,H100,8,1,,2026-11-01,", "line 2: provider: must not begin like a formula"),
        ("my\u202ecloud,big,H100,8,1,,2026-11-01,", "line 2: provider: must be printable"),
        ("mycloud,big,H100,8,1,dollars,2026-11-01,", "rate of DOLLARS: is missing"),
        ("mycloud,big,H100,8,1,,2026-11-01,inf", "line 2: host_memory_gib: must be a finite number"),
        ("mycloud,big,H100,8,1,,2026-11-01,much", "line 2: host_memory_gib: must be a number"),
        (f"{ROW}\n{ROW}", "line 3: instance_type: 'mycloud/unknown/big/on_demand' occurs twice"),
        ('"mycloud,big,H100,8,1,,2026-11-01,', "line 2: is not valid CSV"),
        (f"{'x' * 200_000},big,H100,8,1,,2026-11-01,", "line 2: is not valid CSV, or truncated: field larger than"),
        ("", "holds no offer"),
    ],
)
def test_an_invalid_row_is_refused_with_its_line(row: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"^mine\.csv") as caught:
        load(tmp_path, f"{HEADER}\n{row}\n")

    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("mine.csv", "", "is empty"),
        ("mine.csv", "provider,price\na,1\n", "price: is no column; did you mean price_per_h"),
        ("mine.csv", "provider,provider\na,1\n", "is a column twice"),
        ("mine.toml", "[[offer]\n", "line 1: is no valid TOML"),
        ("mine.toml", "offer = 1\n", r"\[\[offer\]\]"),
        ("mine.toml", "[[offer]]\ncolour = 'red'\n", "colour: is no field"),
        ("mine.toml", "[[offer]]\nprovider = ['a']\n", "provider: must be a text or a number"),
        ("mine.toml", "[[offer]]\nn_accelerator = true\n", "n_accelerator: must be a text or a number"),
        ("mine.toml", "[[offer]]\nprice_per_h = nan\n", "price_per_h: must be a plain number"),
    ],
)
def test_an_invalid_header_or_document_is_refused(name: str, text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=problem):
        load(tmp_path, text, name)


@pytest.mark.parametrize(("name", "most"), [("mine.csv", MAX_OFFER_FILE_BYTE), ("mine.toml", MAX_TOML_BYTE)])
def test_missing_binary_and_too_large_files_are_refused(name: str, most: int, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=name.replace(".", r"\.")):
        load_offer_file(tmp_path / name, CATALOG)
    for content, problem in ((b"\xff\xfe", "UTF-8"), (b"#" * (most + 1), f"at most {most} bytes")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SchemaError, match=problem):
            load_offer_file(tmp_path / name, CATALOG)


def test_too_many_rows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offer_file, "MAX_OFFER", 1)

    with pytest.raises(SchemaError, match="at most 1 rows"):
        load(tmp_path, f"{HEADER}\n{ROW}\n{ROW.replace('big', 'small')}\n")


CELLS = st.dictionaries(st.sampled_from(OFFER_FIELDS), st.text(max_size=30) | st.integers() | st.floats() | st.none())


@settings(max_examples=n_example(300), deadline=None)
@given(CELLS)
def test_any_row_is_read_or_refused(changes: dict[str, object]) -> None:
    valid = dict(zip(HEADER.split(","), ROW.split(","), strict=True))
    with contextlib.suppress(InputError):
        offer = offer_from_row({**valid, **changes}, CATALOG, {"EUR": Decimal("1.1")}, "mine")
        assert offer.price_usd_per_h > 0


@pytest.mark.parametrize(
    ("provider", "market", "expected"),
    [("mycloud", "", "provider"), ("vast", "", "marketplace"), ("mycloud", "marketplace", "marketplace")],
)
def test_the_market_defaults_to_the_provider_s(tmp_path: Path, provider: str, market: str, expected: str) -> None:
    (offer,) = load(tmp_path, f"{HEADER},market\n{ROW.replace('mycloud', provider)},{market}\n")

    assert offer.market == expected
