"""Price lists that others publish on GitHub, and the offers of their rows; a caller fetches the files."""

import contextlib
import dataclasses
import datetime as dt
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from roofcast.data.errors import InputError, SchemaError, UnknownNameError
from roofcast.data.prices.node_rules import is_sold, sold_nodes
from roofcast.data.prices.offer_file import MAX_OFFER_FILE_BYTE, csv_rows
from roofcast.data.specs import Offer

COMMITS: Final = "https://api.github.com/repos/{repository}/commits?path={path}&per_page=1"
FILES: Final = "https://raw.githubusercontent.com/{repository}/{commit}/{path}"

_MAX_HEADER: Final = 10_000

Fetch = Callable[[str], Iterator[bytes]]
"""Yields the parts of the file at an address; raises `NotReadyError` if it cannot be reached."""


@dataclasses.dataclass(frozen=True)
class PriceList:
    """Offers of a price list, and counts of the other rows: by unknown accelerator, and by reason."""

    offers: tuple[Offer, ...]
    unknown_accelerators: Counter[str]
    skipped: Counter[str]


class NoOfferError(Exception):
    """The row is no offer; the message is the reason."""


def has_columns(path: Path | str, columns: Iterable[str]) -> bool:
    """Return whether a CSV file has these columns; False if it cannot be read."""
    try:
        with Path(path).open(encoding="utf-8-sig", errors="replace") as stream:
            header = stream.readline(_MAX_HEADER)
    except OSError:
        return False
    return set(columns) <= {column.strip() for column in header.split(",")}


def read_price_list(
    file: Path, columns: Sequence[str], offers_of: Callable[[Mapping[str, str]], Iterable[Offer]]
) -> PriceList:
    """Return the offers of the rows of a CSV file; of one id the cheapest, in node sizes that are sold.

    `columns`: those that the file must have. `offers_of`: offers of a row; raises `NoOfferError` if there are none.
    Raises `SchemaError` if the file cannot be read, lacks a column, or a cell is wrong; names file, line and field.
    """
    cheapest: dict[str, Offer] = {}
    unknown: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for line, row in csv_rows(file, columns, more=True):
        missing = next((column for column in columns if column not in row), None)
        if missing is not None:
            raise SchemaError(
                missing, f"is missing from the columns, which must have {', '.join(columns)}", file.name, 1
            )
        try:
            for offer in offers_of(row):
                cheapest[offer.id] = min(cheapest.get(offer.id, offer), offer, key=lambda o: o.price_usd_per_h)
        except UnknownNameError as error:
            unknown[error.name] += 1
        except NoOfferError as reason:
            skipped[str(reason)] += 1
        except InputError as error:
            raise SchemaError(error.field, error.problem, file.name, line) from error
    if n_unsold := sum(not is_sold(offer) for offer in cheapest.values()):
        skipped["not sold in this size or at this kind of price"] += n_unsold
    return PriceList(tuple(sold_nodes(cheapest[name] for name in sorted(cheapest))), unknown, skipped)


@contextlib.contextmanager
def published_file(repository: str, path: str, name: str, fetch: Fetch) -> Iterator[tuple[Path, dt.date] | None]:
    """Yield a file of the last commit, which is named by `name` and the commit, and its day; None if there is none.

    Raises `InputError` if the file is too large.
    """
    commits = json.loads(b"".join(fetch(COMMITS.format(repository=repository, path=path))))
    if not commits:
        yield None
        return
    commit, as_of = commits[0]["sha"], dt.date.fromisoformat(commits[0]["commit"]["committer"]["date"][:10])
    url = FILES.format(repository=repository, path=path, commit=commit)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}-{commit[:12]}.csv"
        with file.open("wb") as stream:
            for part in fetch(url):
                if stream.tell() + len(part) > MAX_OFFER_FILE_BYTE:
                    raise InputError("refresh", f"{url} is over {MAX_OFFER_FILE_BYTE} bytes")
                stream.write(part)
        yield file, as_of
