"""Results that GPUStack's pages print, each with what its page states before it."""

import dataclasses
import re
from collections.abc import Iterator

from builders.campaigns.gpustack_pages import read_page
from builders.published import Record


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the printed results, and rejected table rows with throughputs of pages that print none."""
    for page in published:
        name, text = page.cells["@file"], page.cells["@text"]
        for run in read_page(name, text):
            versions = "; ".join(f"{engine} {version}" for engine, version in run.versions.items())
            cells = {**run.figures, **dataclasses.asdict(run), "versions": versions}
            yield Record(run.reference, {"@file": name, **cells, "printed": tuple(run.figures.values())})
        if "__references__" in name:
            for number, line in enumerate(text.splitlines(), start=1):
                texts = [text.strip() for text in line.strip("| ").split("|")]
                if line.startswith("|") and len(texts) >= 4 and any(re.match(r"[\d.]+", text) for text in texts[1:]):
                    yield Record(f"{name}:{number}", {}).rejected("no_lengths", " | ".join(texts))
