"""The tables of ``docs/METRICS.md``, written from the code: ``python -m roofcast.data.docs_tables FILE``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from roofcast.data.importers import FORMATS
from roofcast.data.measurements.metrics import CONVERSIONS, LOAD_MEANINGS, QUANTITIES, SPREAD, STATISTIC_MEANINGS

Tables = Mapping[str, Callable[[], Iterator[str]]]
"""Lines of tables, by the name of the marker that each follows."""


def with_tables(document: str, tables: Tables | None = None) -> str:
    """Return the document with what stands between a marker such as ``<!-- loads -->`` and its end written anew.

    Parameters
    ----------
    document
        In Markdown.
    tables
        `TABLES` if None.
    """
    for name, lines in (TABLES if tables is None else tables).items():
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
    return markdown_table(("column", "name", "over", "statistics", "meaning"), rows)


def _statistics() -> Iterator[str]:
    rows = ((f"`{name}`", text) for name, text in STATISTIC_MEANINGS.items())
    return markdown_table(("statistic", "meaning"), rows)


def _loads() -> Iterator[str]:
    return markdown_table(("load", "meaning"), ((f"`{name}`", text) for name, text in LOAD_MEANINGS.items()))


def _conversions() -> Iterator[str]:
    rows = (
        (f"`{c.function.__name__}`", f"`{c.gives}`", c.formula, c.holds, "yes" if c.is_derived else "no")
        for c in CONVERSIONS
    )
    return markdown_table(("conversion", "gives", "formula", "holds for", "derived"), rows)


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
    return markdown_table(("format", "quantity", "statistics", "out of"), rows)


def markdown_table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown.

    Examples
    --------
    >>> list(markdown_table(("rule", "rows"), [("a|b", "1")]))
    ['| rule | rows |', '| --- | --- |', '| a/b | 1 |']
    """
    yield f"| {' | '.join(header)} |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


TABLES: Final[Tables] = {
    "quantities": _quantities,
    "statistics": _statistics,
    "loads": _loads,
    "conversions": _conversions,
    "formats": _formats,
}
"""By the name of the marker that its table follows."""


def write_tables(program: str, tables: Tables, arguments: Sequence[str] | None = None) -> None:
    """Write the tables of the document that the command line names anew.

    Parameters
    ----------
    program
        Import name of the module, for its help.
    tables
        What to write after which marker.
    arguments
        Words of the command line; those of the process if None.
    """
    parser = argparse.ArgumentParser(prog=program, description=f"Write tables anew: python -m {program} FILE")
    parser.add_argument("file", type=Path)
    file: Path = parser.parse_args(arguments).file
    text = with_tables(file.read_text(encoding="utf-8"), tables)
    file.write_text(text, encoding="utf-8", newline="\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the tables of a document anew."""
    write_tables("roofcast.data.docs_tables", TABLES, arguments)


if __name__ == "__main__":
    main()
