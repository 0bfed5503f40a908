"""Names that the shell completes: columns of the catalogue's tables, read without parsing the catalogue."""

from __future__ import annotations

import csv
import importlib.resources
from collections.abc import Callable

Complete = Callable[[str], list[str]]
"""Returns the names that an incomplete word may become."""


def complete_from(file: str, column: str = "id") -> Complete:
    """Return the completion from a column of a catalogue table; the part of a name after the slash is a name too.

    Examples
    --------
    >>> complete_from("accelerators.csv")("nvidia-h200")
    ['nvidia-h200-nvl-141gb', 'nvidia-h200-sxm-141gb']
    >>> complete_from("offers.csv", "provider")("a")
    ['aws', 'azure']
    """

    def complete(incomplete: str) -> list[str]:
        text = importlib.resources.files("roofcast.data.catalog").joinpath(file).read_text(encoding="utf-8")
        names = {row[column] for row in csv.DictReader(text.splitlines())}
        known = names | {name.partition("/")[2] for name in names} - {""}
        return sorted(name for name in known if name.startswith(incomplete))

    return complete


complete_model = complete_from("models.csv")
complete_accelerator = complete_from("accelerators.csv")
complete_provider = complete_from("offers.csv", "provider")
complete_region = complete_from("offers.csv", "region")
