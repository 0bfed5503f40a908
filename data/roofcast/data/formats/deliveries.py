"""The tables of ``docs/METRICS.md``, written from the code: ``python -m roofcast.data.formats.deliveries FILE``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from roofcast.data.formats import FORMATS
from roofcast.data.quantities import CONVERSIONS, LOAD_MEANINGS, QUANTITIES, SPREAD, STATISTIC_MEANINGS


def with_tables(document: str) -> str:
    """Return the document with what stands between a marker such as ``<!-- loads -->`` and its end written anew."""
    for name, lines in TABLES.items():
        body = "\n".join(lines())
        document = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda match, body=body: f"{match[1]}{body}\n{match[2]}",  # type: ignore[misc]
            document,
            flags=re.DOTALL,
        )
    return document


def _quantities() -> Iterator[str]:
    rows = ((f"`{q.column}`", q.symbol, q.over, q.statistics, q.meaning) for q in QUANTITIES)
    return _table(("column", "name", "over", "statistics", "meaning"), rows)


def _statistics() -> Iterator[str]:
    return _table(("statistic", "meaning"), ((f"`{name}`", text) for name, text in STATISTIC_MEANINGS.items()))


def _loads() -> Iterator[str]:
    return _table(("load", "meaning"), ((f"`{name}`", text) for name, text in LOAD_MEANINGS.items()))


def _conversions() -> Iterator[str]:
    rows = (
        (f"`{c.function.__name__}`", f"`{c.gives}`", c.formula, c.holds, "yes" if c.is_derived else "no")
        for c in CONVERSIONS
    )
    return _table(("conversion", "gives", "formula", "holds for", "derived"), rows)


def _formats() -> Iterator[str]:
    spread = {q.column for q in QUANTITIES if q.statistics == SPREAD}
    rows = (
        (
            f"`{entry.name}`",
            f"`{column}`",
            ", ".join(entry.statistics if column in spread else ("mean",)),
            entry.conversions.get(column, "as it is"),
        )
        for entry in FORMATS.values()
        for column in entry.delivers
    )
    return _table(("format", "quantity", "statistics", "out of"), rows)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


TABLES: Final[dict[str, Callable[[], Iterator[str]]]] = {
    "quantities": _quantities,
    "statistics": _statistics,
    "loads": _loads,
    "conversions": _conversions,
    "formats": _formats,
}
"""By the name of the marker that its table follows."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the tables of a document anew."""
    parser = argparse.ArgumentParser(prog="roofcast.data.formats.deliveries", description=__doc__)
    parser.add_argument("file", type=Path)
    file: Path = parser.parse_args(arguments).file
    file.write_text(with_tables(file.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
