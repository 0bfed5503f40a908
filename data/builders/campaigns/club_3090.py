"""Rigs in the texts of Club 3090's table, and its two speeds a row."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from builders.published import Cells, Record
from builders.recipe import Row

LENGTHS: Final = {"narr": 1000, "code": 800}
"""Largest number of output tokens by prompt, which the answers fill."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the rows with speeds, and malformed ones."""
    for record in published:
        columns = record.columns
        speeds = next((text for name, text in columns.items() if re.search("Narr.*TPS", name)), "")
        if not columns:
            yield record.rejected("malformed", "another number of cells than the header has")
        elif speeds:
            headings, compose = record.cells["@headings"], plain(next(iter(columns.values())))
            yield record.having(
                compose=compose, family=headings[1], heading_text=" / ".join(headings[1:])[:60],
                speed_text=speeds[:40], speed=plain(speeds),
                **_rig(plain(record.cells.get("Rig", "")), compose, headings),
            )  # fmt: skip


def rows(cells: Cells, _common: Row) -> list[Row]:
    """Return two rows, of an essay and of a program."""
    speeds = map(float, cells["speeds"].split())
    return [{"n_output_token": n, "tpot_s": 1 / speed} for n, speed in zip(LENGTHS.values(), speeds, strict=True)]


def plain(text: str) -> str:
    """Return the text without the marks of Markdown.

    Examples
    --------
    >>> plain("**dual.yml** `TP=2`")
    'dual.yml TP=2'
    """
    return text.replace("*", "").replace("`", "").strip()


def _rig(rig: str, compose: str, headings: Sequence[str]) -> dict[str, Any]:
    gpus = set(re.findall(r"(\d)\u00d7 (?:RTX )?(\d{4})\b", rig))
    handle = re.search(r"@([\w.-]+)", rig)
    is_mixed = re.search(r"mixed(?! x\d)|A5000|5070|3090 Ti|V100|heterogeneous", rig, re.IGNORECASE)
    is_one = len(gpus) == 1 and handle is not None and not is_mixed
    n_rig, gpu = gpus.pop() if is_one else ("1", "")
    limits = set(re.findall(r"(\d{3}) ?W\b", rig))
    is_capped = len(limits) == 1 and not re.search(r"no power cap|uncapped|\d{3}/\d{3} ?W", rig)
    return {
        "rig": rig, "gpu": gpu, "n": min(int(n_rig), _n_accelerator(compose, headings, int(n_rig))),
        "owner": handle[1].lower() if is_one and handle else "", "power_limit": limits.pop() if is_capped else "",
    }  # fmt: skip


def _n_accelerator(compose: str, headings: Sequence[str], n_rig: int) -> int:
    match = re.search(r"TP=(\d)", compose)
    if match:
        return int(match[1])
    counts = {"multi4": 4, "quad": 4, "dual": 2, "single": 1}
    texts = (compose.lower(), headings[-1].lower())
    return next((n for text in texts for mark, n in counts.items() if mark in text), n_rig)
