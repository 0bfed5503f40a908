"""CSV or TOML file of a user's offers, in US dollars or in another currency with a rate."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from roofcast.data.catalog import Catalog
from roofcast.data.catalog.sheet_units import fields_in_si
from roofcast.data.csv_rows import check_width, iter_csv
from roofcast.data.errors import InputError, SchemaError, join_errors
from roofcast.data.measurements.column_names import column_cure
from roofcast.data.prices.regions import UNKNOWN_REGION
from roofcast.data.specs import Market, Offer
from roofcast.data.toml_file import parse_toml, read_toml_text

OFFER_FIELDS: Final = (
    "provider", "region", "instance_type", "accelerator", "n_accelerator", "vcpu", "host_memory_gib", "pricing",
    "market", "price_per_h", "currency", "listed_price_per_h", "listed_currency", "as_of", "source", "licence",
)  # fmt: skip
MAX_OFFER_FILE_BYTE: Final = 50_000_000
MAX_OFFER: Final = 200_000
_MAX_CELL: Final = 2_000

MARKETPLACES: Final = frozenset(
    tomllib.loads(Path(__file__).with_name("marketplaces.toml").read_text(encoding="utf-8"))["providers"]
)
"""Providers whose instances third-party hosts supply: marketplaces, and community tiers of providers."""

OWN_FIGURES: Final = "own figures"
"""Licence of offers that a user states without another."""

_DEFAULTS: Final = {"region": UNKNOWN_REGION, "n_accelerator": "1", "pricing": "on_demand", "licence": OWN_FIGURES}


def load_offer_file(path: Path | str, catalog: Catalog, rates: Mapping[str, Decimal] | None = None) -> list[Offer]:
    """Return the offers of a CSV or TOML file.

    A CSV file has a column for each of `OFFER_FIELDS`, a TOML file a table ``[[offer]]`` for each offer; provider,
    instance_type, accelerator, price_per_h and as_of are required. `market` defaults to the provider's usual one.
    `listed_price_per_h` and `listed_currency` hold the amount that the provider listed in another currency.

    Raises `SchemaError` if the file cannot be read, is too large, or an offer is wrong, repeated, of an unknown
    accelerator or in a currency without a rate; names file, line (in TOML the offer's number) and field.

    - `path`: The file; TOML if it ends in ``.toml``, else CSV.
    - `catalog`: For the names of accelerators.
    - `rates`: US dollars for one unit of a currency; the offer's source notes the rate.
    """
    file = Path(path)
    rows = _toml_rows(file) if file.suffix.lower() == ".toml" else csv_rows(file, OFFER_FIELDS)
    offers: dict[str, Offer] = {}
    for line, row in rows:
        try:
            offer = offer_from_row(row, catalog, rates or {}, file.name)
        except InputError as error:
            raise SchemaError(error.field, error.problem, file.name, line) from error
        if offer.id in offers:
            raise SchemaError("instance_type", f"{offer.id!r} occurs twice", file.name, line)
        offers[offer.id] = offer
    if not offers:
        raise SchemaError("", "holds no offer", file.name)
    return list(offers.values())


def offer_from_row(row: Mapping[str, Any], catalog: Catalog, rates: Mapping[str, Decimal], source: str) -> Offer:
    """Return the offer of a row with the cells `OFFER_FIELDS`; blank cells take their defaults.

    Raises `InputError` if a cell is wrong, or there is no rate for its currency; names the cell.
    """
    cells = {name: value for name, value in row.items() if value is not None and value != ""}
    _refuse_formulas(cells)
    currency = str(cells.pop("currency", "USD")).strip().upper()
    listed = _parse_amount("price_per_h", cells.pop("price_per_h", None))
    fields = {**_DEFAULTS, "market": usual_market(str(cells.get("provider", ""))), "source": source, **cells}
    if "accelerator" in fields:
        fields["accelerator"] = catalog.accelerator(str(fields["accelerator"])).id
    for name in ("listed_price_per_h", "listed_currency"):
        if currency != "USD" and name in cells:
            raise InputError(name, f"must be blank where currency is {currency}: the price is the listed one")
    rate = Decimal(1)
    if currency != "USD":
        rate = _parse_amount(f"rate of {currency}", rates.get(currency))
        fields["source"] = f"{fields['source']}; {listed} {currency} at {rate} USD"
        fields |= {"listed_price_per_h": listed, "listed_currency": currency}
    return Offer.parse({**fields_in_si(fields), "price_usd_per_h": listed * rate})


def usual_market(provider: str) -> Market:
    """Return the market of a provider's offers unless an offer states another.

    Examples
    --------
    >>> usual_market("aws"), usual_market("Vast")
    ('provider', 'marketplace')
    """
    return "marketplace" if provider.strip().casefold() in MARKETPLACES else "provider"


def _parse_amount(name: str, value: object) -> Decimal:
    if value is None:
        raise InputError(name, "is missing")
    text = str(value).strip()
    if not re.fullmatch(r"\d{1,12}(\.\d{1,30})?", text):
        raise InputError(name, f"must be a plain number such as 12.5, got {text[:60]!r}")
    return Decimal(text)


def _refuse_formulas(cells: Mapping[str, Any]) -> None:
    for name, value in cells.items():
        if isinstance(value, bool | list | dict):
            raise InputError(name, f"must be a text or a number, got a {type(value).__name__}")
        text = str(value)
        if len(text) > _MAX_CELL or not text.isprintable():
            raise InputError(name, f"must be printable text of up to {_MAX_CELL} characters on one line")
        if text.startswith(("=", "+", "@", "-")):
            raise InputError(name, f"must not begin like a formula, got {text[:60]!r}")


def csv_rows(path: Path, columns: Iterable[str], *, more: bool = False) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and cells of each row of a CSV file.

    `columns`: known columns. `more`: whether other columns are allowed. Raises `SchemaError` if the file cannot be
    read, is too large, has an unknown or double column, or a row of another length.
    """
    name = path.name
    try:
        if path.stat().st_size > MAX_OFFER_FILE_BYTE:
            raise SchemaError("", f"must be at most {MAX_OFFER_FILE_BYTE} bytes", name)
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = iter_csv(stream, name)
            header = [column.strip() for column in next(rows, (1, []))[1]]
            _check_header(header, set(columns), name, more=more)
            for n_row, (line, cells) in enumerate(rows, start=1):
                if n_row > MAX_OFFER:
                    raise SchemaError("", f"must hold at most {MAX_OFFER} rows", name)
                check_width(cells, header, name, line)
                yield line, dict(zip(header, map(str.strip, cells), strict=True))
    except SchemaError:
        raise
    except UnicodeDecodeError as error:
        raise SchemaError("", "must be UTF-8 text", name) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SchemaError("", f"cannot be read: {reason.lower()}", name) from error


def _check_header(header: list[str], known: set[str], source: str, *, more: bool) -> None:
    if not header:
        raise SchemaError("", "is empty", source)
    twice = next((column for column in header if header.count(column) > 1), None)
    if twice is not None:
        raise SchemaError(twice[:60], "is a column twice", source, 1)
    if more:
        return
    unknown = [column for column in header if column not in known]
    if unknown:
        problems = {column[:60]: f"is no column; {column_cure(column, known)}" for column in unknown}
        raise join_errors([SchemaError(column, problem, source, 1) for column, problem in problems.items()])


def _toml_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    document = parse_toml(read_toml_text(path), path.name, Decimal)
    rows = document.get("offer", [])
    if set(document) - {"offer"} or not isinstance(rows, list):
        raise SchemaError("", "must hold only tables [[offer]]", path.name)
    for number, row in enumerate(rows, start=1):
        unknown = next((n for n in row if n not in OFFER_FIELDS), None) if isinstance(row, dict) else "offer"
        if unknown is not None:
            raise SchemaError(
                unknown[:60], f"is no field; the fields are {', '.join(OFFER_FIELDS)}", path.name, number
            )
        yield number, row
