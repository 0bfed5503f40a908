"""The user's catalogue: accelerators, prices and owned hardware in files of the state folder, read and written."""

import contextlib
import csv
import datetime as dt
import logging
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

from roofcast.data import units
from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.catalog.accelerator_file import load_accelerator_file
from roofcast.data.catalog.accelerator_lint import Finding, lint_accelerators
from roofcast.data.catalog.sheet_units import fields_in_si
from roofcast.data.errors import InputError, NotReadyError, SchemaError, UnknownNameError
from roofcast.data.prices.offer_file import OFFER_FIELDS, load_offer_file
from roofcast.data.prices.owned_hardware import OwnedHardware
from roofcast.data.prices.price_book import MAX_AGE_DAY, PriceBook
from roofcast.data.prices.price_list import PriceList
from roofcast.data.prices.skypilot import load_skypilot_catalog
from roofcast.data.specs import AcceleratorSpec, Offer
from roofcast.data.toml_file import parse_toml, read_toml_text
from roofcast.serving.display_names import count_text

logger = logging.getLogger(__name__)

ACCELERATORS: Final = "accelerators"
OFFERS: Final = "offers"
"""Subfolders of the state folder."""

REFRESHED: Final = "refreshed-"
"""Start of the names of the files that `roofcast offers --refresh` writes; of these prices the newest count."""

OWNED: Final = "owned"
"""Provider of offers that are computed from the cost of owned hardware."""

_SUFFIXES: Final = {ACCELERATORS: {".toml"}, OFFERS: {".csv", ".toml"}}


_File = tuple[Path, int, int, int]


class _Folder(NamedTuple):
    files: tuple[_File, ...]
    problem: str


class UserFiles:
    """The shipped catalogue with ``accelerators/*.toml`` and ``offers/*.{csv,toml}`` of a state folder.

    A file with an error is ignored; one warning is given for each version of it.

    `home`: state folder. `warn`: receives the warnings.
    """

    def __init__(self, home: Path, warn: Callable[[str], None] = logger.warning) -> None:
        self._home = home
        self._warn = warn
        self._reading = threading.Lock()
        self._listing: tuple[_Folder, ...] | None = None
        self._catalog = load_catalog()

    @property
    def catalog(self) -> Catalog:
        """The catalogue with the present files; the same object until one of them changes."""
        with self._reading:
            listing = tuple(_list_folder(self._home / name) for name in _SUFFIXES)
            if listing != self._listing:
                self._catalog, problems = _read(*listing)
                self._listing = listing
                for problem in problems:
                    self._warn(problem)
            return self._catalog


def _list_folder(folder: Path) -> _Folder:
    try:
        paths = sorted(folder.iterdir())
    except FileNotFoundError:
        return _Folder((), "")
    except OSError as error:
        return _Folder((), f"{folder.name}: cannot be read: {(error.strerror or str(error)).lower()}")
    named = (p for p in paths if p.suffix.lower() in _SUFFIXES[folder.name] and not p.name.startswith("."))
    return _Folder(tuple(file for path in named for file in _file_identity(path)), "")


def _file_identity(path: Path) -> Iterator[_File]:
    with contextlib.suppress(OSError):  # the file was just deleted
        if path.is_file():
            stat = path.stat()
            yield path, stat.st_mtime_ns, stat.st_size, stat.st_ino


def _read(accelerators: _Folder, offers: _Folder) -> tuple[Catalog, list[str]]:
    catalog = load_catalog()
    problems = [folder.problem for folder in (accelerators, offers) if folder.problem]
    for path, *_ in accelerators.files:
        try:
            catalog = _with_accelerator(catalog, path)
        except InputError as error:
            problems.append(f"{ACCELERATORS}/{error}; the file is left out")
    own: list[Offer] = []
    refreshed: list[Offer] = []
    for path, *_ in offers.files:
        try:
            target = refreshed if path.name.startswith(REFRESHED) else own
            target += load_offer_file(path, catalog)
        except InputError as error:
            problems.append(f"{OFFERS}/{error}; the file is left out")
    own.sort(key=lambda offer: offer.as_of)  # the newest price of an offer is the last
    history = (*catalog.offers, *refreshed)
    return catalog.with_offers(PriceBook(history, dt.date.max, tuple(own)).offers.values()), problems


def _with_accelerator(catalog: Catalog, path: Path) -> Catalog:
    spec = load_accelerator_file(path)
    try:
        check_free(spec, catalog)
    except InputError as error:
        raise SchemaError(error.field, error.problem, path.name) from error
    return catalog.with_accelerators([spec])


def check_free(spec: AcceleratorSpec, catalog: Catalog, replaced: str = "") -> None:
    """Refuse an accelerator whose names are names of another one.

    `replaced`: id of the accelerator that it replaces. Raises `InputError` if its id, its id without the maker, or
    its name is taken.
    """
    for field, name in (("id", spec.id), ("id", spec.id.partition("-")[2]), ("name", spec.name)):
        try:
            owner = catalog.accelerator(name)
        except UnknownNameError:
            continue
        if owner.id != replaced:
            raise InputError(field, f"{name!r} already names {owner.id!r}; choose another")


def staleness_warnings(offers: Iterable[Offer], today: dt.date) -> list[str]:
    """Return a warning if offers are old; offers of owned hardware do not expire.

    Examples
    --------
    >>> offer = load_catalog().offers[0].model_copy(update={"as_of": dt.date(2025, 1, 1)})
    >>> staleness_warnings([offer], dt.date(2026, 1, 1))
    ['1 of 1 prices are more than 120 days old; the oldest is of 2025-01-01, 365 days ago']
    """
    offers = tuple(offers)
    owned = tuple(offer for offer in offers if offer.provider == OWNED)
    warning = PriceBook(offers, today, owned).staleness_warning(today)
    return [warning] if warning else []


def old_price_warnings(choices: Mapping[str, Iterable[Offer]], today: dt.date) -> list[str]:
    """Return a warning for each choice with an old price, named by the choice; owned hardware has none.

    Only what an answer proposes to rent is a choice: its first entry and its fleet. Others show their date.

    Examples
    --------
    >>> offer = load_catalog().offers[0].model_copy(update={"as_of": dt.date(2025, 1, 1)})
    >>> [warning] = old_price_warnings({"first entry": [offer], "mixed fleet": []}, dt.date(2026, 1, 1))
    >>> warning.partition(":")[0], warning.partition("run ")[2]
    ('the price of the first entry is 365 days old (2025-01-01)', '`roofcast offers --refresh gpu-price-index`')
    """
    warnings = []
    for name, offers in choices.items():
        dates = [offer.as_of for offer in offers if offer.provider != OWNED]
        age = (today - min(dates, default=today)).days
        if age > MAX_AGE_DAY:
            text = f"the price of the {name} is {age} days old ({min(dates)})"
            warnings.append(f"{text}: check it, or run `roofcast offers --refresh gpu-price-index`")
    return warnings


UNSTATED: Final = "not stated by the source"

OWNED_FIELDS: Final = (*(name for name in OwnedHardware.model_fields if name != "memory_byte"), "host_memory_gib")


def owned_template() -> str:
    """Return a file for `add_owned` with every field."""
    return Path(__file__).with_name("owned_template.toml").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class AddedOffers:
    """Offers that were added, their file, and remarks for the user."""

    offers: tuple[Offer, ...]
    path: Path
    remarks: tuple[str, ...] = ()


def add_accelerator(
    file: Path, home: Path, catalog: Catalog, *, replace: bool = False
) -> tuple[AcceleratorSpec, Path, list[Finding]]:
    """Copy an accelerator file into the state folder; return the accelerator, the new path and lint findings.

    `home`: state folder. `replace`: whether to replace the user's accelerator of the same id, which must exist.
    Raises `InputError` if the file is invalid, a name in it is taken, or there is no accelerator to replace;
    `NotReadyError` if the state folder cannot be written.
    """
    spec = load_accelerator_file(file)
    target = home / ACCELERATORS / f"{spec.id}.toml"
    if target.exists() and not replace:
        raise InputError("id", f"{target} exists already; replace it with --replace, or choose another id")
    if replace and not target.exists():
        raise InputError("replace", f"you have no accelerator {spec.id!r}; leave --replace out to add it")
    check_free(spec, catalog, spec.id if replace else "")
    _place(target, lambda draft: shutil.copyfile(file, draft))
    return spec, target, lint_accelerators([spec])


def add_offers(
    file: Path, home: Path, catalog: Catalog, rates: Mapping[str, Decimal], *, replace: bool = False
) -> AddedOffers:
    """Add the offers of a CSV or TOML file, in US dollars; newer prices of the same offers take precedence.

    `replace`: whether an earlier file of the same name may lose offers. Raises `InputError` if the file is invalid,
    an amount is in a currency without a rate, or an earlier file of the same name would lose offers; `NotReadyError`
    if the state folder cannot be written.
    """
    offers = load_offer_file(file, catalog, rates)
    target = _offer_target(home, file.stem)
    if target.exists() and not replace:
        lost = {offer.id for offer in load_offer_file(target, catalog)} - {offer.id for offer in offers}
        if lost:
            problem = f"would drop {len(lost)} offers that {target.name} holds, such as {min(lost)}"
            raise InputError("add", f"{problem}; rename your file, or give --replace")
    return write_offers(offers, file.stem, home, catalog)


def add_skypilot(
    file: Path, home: Path, catalog: Catalog, *, provider: str, as_of: dt.date, licence: str = ""
) -> AddedOffers:
    """Add the offers of a SkyPilot price list; an earlier list of the same provider is replaced.

    Raises `InputError` if the file is invalid, or holds no offer; `NotReadyError` if the state folder cannot be
    written.
    """
    listing = load_skypilot_catalog(file, provider, as_of, catalog, licence or UNSTATED)
    if not listing.offers:
        raise SchemaError("", "holds no offer of a known accelerator", file.name)
    return write_offers(listing.offers, f"skypilot-{provider}", home, catalog, remarks_on(listing))


def remarks_on(listing: PriceList) -> list[str]:
    """Return what is left out of a price list, in words."""
    left_out = {
        "of accelerators that no catalogue knows": listing.unknown_accelerators,
        "without an offer": listing.skipped,
    }
    remarks = []
    for what, counts in left_out.items():
        if counts:
            listed = ", ".join(f"{n} x {name}" for name, n in counts.most_common())
            remarks.append(f"left out: {count_text(counts.total(), 'row')} {what}: {listed}")
    return remarks


def add_owned(file: Path, home: Path, catalog: Catalog, today: dt.date) -> AddedOffers:
    """Add the hourly cost of an owned server, as an offer of the provider ``owned``.

    Raises `InputError` if the file is invalid, or the server costs nothing; `NotReadyError` if the state folder
    cannot be written.
    """
    fields = parse_toml(read_toml_text(file), file.name, Decimal)
    try:
        accelerator = catalog.accelerator(str(fields.get("accelerator", "")))
        server = OwnedHardware.parse({**fields_in_si(fields), "accelerator": accelerator.id})
        offer = server.offer(today)
    except InputError as error:
        raise SchemaError(error.field, error.problem, file.name) from error
    return write_offers([offer], f"owned-{server.name}", home, catalog)


def write_offers(
    offers: Iterable[Offer], name: str, home: Path, catalog: Catalog, remarks: Iterable[str] = ()
) -> AddedOffers:
    """Write offers to a file of this name in the state folder, in place of an earlier one.

    Raises `InputError` if the file could not be read back; `NotReadyError` if the state folder cannot be written.
    """
    target = _offer_target(home, name)
    offers = tuple(offers)
    remarks = (*remarks, *([f"the earlier offers of {target.name} are replaced"] if target.exists() else []))

    def write(draft: Path) -> None:
        with draft.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, OFFER_FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(map(_cells, offers))
        try:
            load_offer_file(draft, catalog)  # check that the file can be read back
        except SchemaError as error:
            raise InputError(error.field, error.problem) from error

    _place(target, write)
    return AddedOffers(offers, target, remarks)


def _offer_target(home: Path, name: str) -> Path:
    return home / OFFERS / f"{re.sub(r'[^A-Za-z0-9._+-]+', '_', name).lstrip('.')[:100] or 'offers'}.csv"


def _cells(offer: Offer) -> dict[str, Any]:
    fields: dict[str, Any] = {name: getattr(offer, name) for name in OFFER_FIELDS if name in Offer.model_fields}
    return {
        **fields,
        "host_memory_gib": offer.memory_byte / units.BYTE_PER_GIB if offer.memory_byte else "",
        "price_per_h": format(offer.price_usd_per_h, "f"),
        "currency": "USD",
    }


def _place(target: Path, write: Callable[[Path], object]) -> None:
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write(draft)
        draft.replace(target)
    except OSError as error:
        raise NotReadyError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
