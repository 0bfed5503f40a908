"""Generator of documentation tables: ``python -m codegen.docs_tables FILE...``."""

import argparse
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from judge.markdown import markdown_table
from roofcast.data.importers import FORMATS
from roofcast.data.measurements.schema import MEAN_ONLY_COLUMNS
from roofcast.serving.app_state.published_figures import OWN_DOCS, shipped_figures
from roofcast.serving.recommend.demand.presets import PRESETS

METRICS: Final = {"tpot": "TPOT", "ttft": "TTFT", "output_throughput": "throughput"}

CORE: Final = "analytic_calibrated"
"""Method of the scoreboard that is roofcast's calibrated estimate without the learner."""

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

    `program`: import name of the module, for the help text. `arguments`: Command-line arguments; those of the process
    if None.
    """
    parser = argparse.ArgumentParser(prog=program, description=f"Write tables: python -m {program} FILE...")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    for file in parser.parse_args(arguments).files:
        text = with_tables(file.read_text(encoding="utf-8"), tables)
        file.write_text(text, encoding="utf-8", newline="\n")


def _formats() -> str:
    rows = (
        (
            f"`{entry.name}`",
            f"`{column}`",
            ", ".join(("mean",) if column in MEAN_ONLY_COLUMNS else entry.statistics),
            entry.conversions.get(column, "as it is"),
        )
        for entry in FORMATS.values()
        for column in entry.delivers
    )
    return plain_table(("format", "quantity", "statistics", "source field"), rows)


def _presets() -> str:
    header = (
        "preset",
        "what",
        "input tokens",
        "output tokens",
        "variation",
        "cached",
        "think time",
        "observed",
        "figures",
    )
    rows = (
        (
            f"`{preset.name}`",
            preset.meaning,
            f"{preset.n_input_token:,.0f}",
            f"{preset.n_output_token:,.0f}",
            _ratio(preset.length_variation),
            _ratio(preset.prefix_cache_ratio),
            "" if preset.think_time_s is None else f"{preset.think_time_s:g} s",
            preset.observed,
            f"[{preset.basis}]({preset.source})"
            + (f"; think time: [{preset.think_basis}]({preset.think_source})" if preset.think_source else ""),
        )
        for preset in PRESETS.values()
    )
    return plain_table(header, rows)


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _decisions() -> str:
    """Return the list of decision records, by number."""
    files = sorted((OWN_DOCS / "decisions").glob("0*.md"))
    titles = [file.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for file in files]
    return "\n".join(f"- [{title}]({file.name})" for title, file in zip(titles, files, strict=True))


def _headline() -> str:
    """Return the figures of the shipped scoreboard that the README opens with, rounded to roofcast's disadvantage.

    Beside them are those of its core alone: the calibrated estimate, on the rows that roofcast answers.
    """
    shipped = shipped_figures()
    unseen, methods, choice, stacks = (shipped[name] for name in ("P4", "P4_methods", "P2", "P7_all"))
    on_stacks, on_stacks_core = (stacks.figures[method] for method in ("roofcast", CORE))
    peer, own = choice.figures["LLM-Pilot"], choice.figures["roofcast"]
    pooled, pooled_core = ({m: of[m]["pooled"] for m in METRICS} for of in (on_stacks, on_stacks_core))
    rows = [
        (
            f"median error for an LLM that it has not seen, on a measured stack (P4, {unseen.computed})",
            _by_metric(unseen.figures, "median_ape", _up),
            _by_metric(methods.figures[CORE], "median_ape", _down),
        ),
        ("measurements inside the 90 % interval (P4)", _by_metric(unseen.figures, "coverage_90", _down), ""),
        (
            f"median error on a stack (host, engine, settings) that nobody measured (P7, {stacks.computed})",
            _by_metric(pooled, "median_ape", _up),
            _by_metric(pooled_core, "median_ape", _down),
        ),
        (
            "measurements inside the 90 % interval (P7, mean over owners)",
            _by_metric(on_stacks, "coverage_90", _down),
            "",
        ),
        (
            f"recommendations that hold, of ninety questions for each LLM (P2, {choice.computed})",
            f"{_down(own['success'])}; LLM-Pilot {_up(peer['success'])}",
            "",
        ),
        (
            "their cost over that of the cheapest that holds (P2)",
            f"+{_up(own['overspend'])}; LLM-Pilot +{_down(peer['overspend'])}",
            "",
        ),
    ]
    return plain_table(("protocol", "roofcast", "its calibrated core alone"), rows)


def _peers() -> str:
    """Return P1 and P2 of the shipped scoreboard by method; roofcast's figures are rounded to its disadvantage."""
    shipped = shipped_figures()
    rows = []
    for method in shipped["P1"].figures:
        is_own = method == "roofcast"
        low, high = (_down, _up) if is_own else (_up, _down)
        cells = [f"**{method}**" if is_own else method]
        for protocol in ("P1", "P2"):
            figures = shipped[protocol].figures[method]
            cells += [low(figures["success"]), high(figures["overspend"]), low(figures["so"])]
        rows.append(cells)
    return plain_table(("method", "P1 success", "overspend", "S/O", "P2 success", "overspend", "S/O"), rows)


def _held_out() -> str:
    """Return P4 and P5 of the shipped scoreboard, rounded to roofcast's disadvantage."""
    shipped = shipped_figures()
    unseen, measured = shipped["P4"].figures, shipped["P5"].figures["3"]
    rows = (
        (
            name,
            f"{_up(figures['mape'])} / {_up(figures['median_ape'])}",
            *(
                f"{_up(f[metric]['mape'])} / {_up(f[metric]['median_ape'])}" if metric in f else ""
                for f in (measured["P4"], measured)
            ),
            _down(figures["coverage_90"]),
            f"{math.ceil(figures['width_90'] * 100) / 100:.2f}",
        )
        for metric, name in METRICS.items()
        for figures in [unseen[metric]]
    )
    header = (
        "metric",
        "all rows",
        "rows of P5, alone",
        "with three points",
        "inside the 90 % interval",
        "high over low, median",
    )
    return plain_table(header, rows)


def _by_metric(figures: Mapping[str, Any], figure: str, rounded: Callable[[float], str]) -> str:
    return "; ".join(f"{name} {rounded(figures[metric][figure])}" for metric, name in METRICS.items())


def _up(ratio: float) -> str:
    return f"{math.ceil(ratio * 1000) / 10:.1f} %"


def _down(ratio: float) -> str:
    return f"{math.floor(ratio * 1000) / 10:.1f} %"


TABLES: Final[Tables] = {
    "formats": _formats,
    "presets": _presets,
    "headline": _headline,
    "peers": _peers,
    "held out": _held_out,
    "decisions": _decisions,
}
"""Tables of ``README.md``, ``docs/METRICS.md``, ``docs/WORKLOADS.md``, ``docs/explanation/figures.md`` and
``docs/decisions/index.md``, by marker."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Update the tables of the documents named on the command line."""
    write_tables("codegen.docs_tables", TABLES, arguments)


if __name__ == "__main__":
    main()
