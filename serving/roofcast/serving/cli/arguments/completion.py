"""Values that the shell completes: choices, and names of the catalogue's tables, which are not parsed for it."""

import csv
import importlib.resources
from collections.abc import Callable, Mapping
from typing import Final

Complete = Callable[[str], list[str]]
"""Returns the names that an incomplete word may become."""


def complete_from(file: str, column: str = "id", separator: str = "/") -> Complete:
    """Return the completion from a column of a catalogue table; the part of a name after the separator is a name too.

    Examples
    --------
    >>> complete_from("accelerators.csv")("nvidia-h200")
    ['nvidia-h200-nvl-141gb', 'nvidia-h200-sxm-141gb']
    >>> complete_from("offers.csv", "provider")("a")
    ['akash', 'aws', 'azure']
    """

    def complete(incomplete: str) -> list[str]:
        text = importlib.resources.files("roofcast.data.catalog").joinpath(file).read_text(encoding="utf-8")
        names = {row[column] for row in csv.DictReader(text.splitlines())}
        return complete_names(*names, *(name.partition(separator)[2] for name in names))(incomplete)

    return complete


def complete_names(*names: str) -> Complete:
    """Return the completion of names; blank ones are none."""
    return lambda incomplete: sorted({name for name in names if name and name.startswith(incomplete)})


def _complete_engine(incomplete: str) -> list[str]:
    from roofcast.features.columns import ENGINES

    return complete_names(*ENGINES)(incomplete)


complete_model = complete_from("models.csv")
COMPLETE: Final[Mapping[str, Complete]] = {
    "model": complete_model,
    "accelerator": complete_from("accelerators.csv", separator="-"),
    "accelerators": complete_from("accelerators.csv", separator="-"),
    "vendors": complete_from("accelerators.csv", "vendor"),
    "providers": complete_from("offers.csv", "provider"),
    "regions": complete_from("offers.csv", "region"),
    "pricing": complete_from("offers.csv", "pricing"),
    "engine": _complete_engine,
    "engines": _complete_engine,
}
"""Completion of the values of columns and fields of names; those of a choice are completed from it."""
