"""Generator of documentation tables: ``python -m builders.docs_tables FILE...``."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from roofcast.data.importers import FORMATS
from roofcast.data.measurements.metrics import CONVERSIONS, LOAD_MEANINGS, QUANTITIES, SPREAD, STATISTIC_MEANINGS
from roofcast.serving.recommend.demand.presets import PRESETS
from roofcast.training.evaluation.markdown import markdown_table

Tables = Mapping[str, Callable[[], str]]
"""Generators of Markdown tables by marker."""


def with_tables(document: str, tables: Tables) -> str:
    """Return the Markdown document with updated tables between each ``<!-- name -->`` and ``<!-- end -->``."""
    for name, table in tables.items():
        body = table()
        document = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda match, body=body: f"{match[1]}{body}\n{match[2]}",  # type: ignore[misc]
            document,
            flags=re.DOTALL,
        )
    return document


def plain_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; bars in cells become slashes.

    Examples
    --------
    >>> print(plain_table(("rule", "rows"), [("a|b", "1")]))
    | rule | rows |
    | --- | --- |
    | a/b | 1 |
    """
    return markdown_table(header, [[cell.replace("|", "/") for cell in row] for row in rows])


def write_tables(program: str, tables: Tables, arguments: Sequence[str] | None = None) -> None:
    """Update the tables of the documents named on the command line.

    Parameters
    ----------
    program
        Import name of the module, for the help text.
    arguments
        Command-line arguments; those of the process if None.
    """
    parser = argparse.ArgumentParser(prog=program, description=f"Write tables: python -m {program} FILE...")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    for file in parser.parse_args(arguments).files:
        text = with_tables(file.read_text(encoding="utf-8"), tables)
        file.write_text(text, encoding="utf-8", newline="\n")


def _quantities() -> str:
    rows = ((f"`{q.column}`", q.symbol, q.over, q.statistics, q.meaning) for q in QUANTITIES)
    return plain_table(("column", "name", "over", "statistics", "meaning"), rows)


def _statistics() -> str:
    rows = ((f"`{name}`", meaning) for name, meaning in STATISTIC_MEANINGS.items())
    return plain_table(("statistic", "meaning"), rows)


def _loads() -> str:
    return plain_table(("load", "meaning"), ((f"`{name}`", meaning) for name, meaning in LOAD_MEANINGS.items()))


def _conversions() -> str:
    rows = (
        (f"`{c.function.__name__}`", f"`{c.gives}`", c.formula, c.holds, "yes" if c.is_derived else "no")
        for c in CONVERSIONS
    )
    return plain_table(("conversion", "gives", "formula", "holds for", "derived"), rows)


def _formats() -> str:
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
    return plain_table(("format", "quantity", "statistics", "source field"), rows)


def _presets() -> str:
    header = ("preset", "what", "input tokens", "output tokens", "variation", "cached", "observed", "figures")
    rows = (
        (
            f"`{preset.name}`",
            preset.meaning,
            f"{preset.n_input_token:,}",
            f"{preset.n_output_token:,}",
            _ratio(preset.length_variation),
            _ratio(preset.prefix_cache_ratio),
            preset.observed,
            f"[{preset.basis}]({preset.source})",
        )
        for preset in PRESETS.values()
    )
    return plain_table(header, rows)


def _ratio(ratio: float) -> str:
    return "" if math.isnan(ratio) else f"{ratio:.2f}"


TABLES: Final[Tables] = {
    "quantities": _quantities,
    "statistics": _statistics,
    "loads": _loads,
    "conversions": _conversions,
    "formats": _formats,
    "presets": _presets,
}
"""Tables of ``docs/METRICS.md`` and ``docs/WORKLOADS.md``, by marker."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Update the tables of the documents named on the command line."""
    write_tables("builders.docs_tables", TABLES, arguments)


if __name__ == "__main__":
    main()
