"""DGX Cloud's recipes: a run is a column of a table; the rows are its measures and settings."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from builders.published import Record

_COLUMN: Final = re.compile(r"(?P<n>\d+)x? H100 GPUs(?: \((?:FSDP=(?P<fsdp>\d+) )?GBS=(?P<gbs>\d+)\))?$")


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the rows that are no measures, then the runs: the measures of a column, by name."""
    runs: dict[str, dict[str, Any]] = defaultdict(dict)
    table, last, n_page = "", "", 0
    for page in published:
        title, measure, *_ = [*page.columns, *page.columns.values()][0], next(iter(page.columns.values()), "")
        if "inference" in page.cells["@page"] or page.cells["@page"].startswith("alternative"):
            yield page.rejected("not_training", page.cells["@page"])
            continue
        if measure in {"Layers", "Training samples per second"} or (
            measure.startswith("Training step") and last != "VP"
        ):
            table = page.reference
        last = measure
        if measure == "Training samples per second":
            yield page.rejected("no_sequence_length", "samples per second of a length that the page leaves open")
            continue
        n_page += 1
        for heading, text in list(page.columns.items())[1:]:
            if column := _COLUMN.search(heading):
                run = runs[f"{table}:{column['n']}"]
                place = {name: cell for name, cell in page.cells.items() if name.startswith("@")}
                run |= {} if run else {**place, **column.groupdict(""), "title": title}
                run[measure] = text
    for i_run, (reference, run) in enumerate(runs.items()):
        yield Record(reference, _titled(run["title"]) | run, n_published=0 if i_run else n_page)


def _titled(title: str) -> dict[str, str]:
    match = re.match(r"(?:Maxtext )?(.+?)(?: (\d\d\.\d\d)| Dev)? (BF16|FP8)(?: \((.*)\))?$", title)
    if match is None:
        return {}
    name, release, precision, sizes = match.groups("")
    return {"name": name, "release": release, "precision": precision} | dict(re.findall(r"(\w+)=(\d+)", sizes))
