"""Accelerators and prices of the user: files in the state folder, read again when they change."""

import contextlib
import datetime as dt
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.catalog.accelerator_file import load_accelerator_file
from roofcast.data.errors import InputError, SchemaError, UnknownNameError
from roofcast.data.prices.offer_file import load_offer_file
from roofcast.data.prices.price_book import MAX_AGE_DAY, PriceBook
from roofcast.data.specs import AcceleratorSpec, Offer

logger = logging.getLogger(__name__)

ACCELERATORS: Final = "accelerators"
OFFERS: Final = "offers"
"""Subfolders of the state folder."""

REFRESHED: Final = "refreshed-"
"""Start of the names of the files that `roofcast offers --refresh` writes; of these prices the newest count."""

OWNED: Final = "owned"
"""Provider of offers that are computed from the cost of owned hardware."""

_SUFFIXES: Final = {ACCELERATORS: {".toml"}, OFFERS: {".csv", ".toml"}}


class _File(NamedTuple):
    path: Path
    time_ns: int
    n_byte: int
    inode: int


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
            yield _File(path, stat.st_mtime_ns, stat.st_size, stat.st_ino)


def _read(accelerators: _Folder, offers: _Folder) -> tuple[Catalog, list[str]]:
    catalog = load_catalog()
    problems = [folder.problem for folder in (accelerators, offers) if folder.problem]
    for file in accelerators.files:
        try:
            catalog = _with_accelerator(catalog, file.path)
        except InputError as error:
            problems.append(f"{ACCELERATORS}/{error}; the file is left out")
    own: list[Offer] = []
    refreshed: list[Offer] = []
    for file in offers.files:
        try:
            target = refreshed if file.path.name.startswith(REFRESHED) else own
            target += load_offer_file(file.path, catalog)
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
