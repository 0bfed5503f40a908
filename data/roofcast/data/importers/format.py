"""What every importer of published benchmark files offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.data.importers.sources import Source

Progress = Callable[[Iterable[Source]], Iterable[Source]]
"""Wraps the files while they are read, to show how far the import is; `rich.progress.track` fits."""

Given = Mapping[str, object]
"""What the user says of the files: column of the measurement table to value. See `importers.overrides`."""

NOTHING_GIVEN: Final[Given] = {}


def no_progress(sources: Iterable[Source]) -> Iterable[Source]:
    """Return the files as they are: the `Progress` that shows nothing."""
    return sources


Read = Callable[[Sequence[Path], str, Progress, Given], pd.DataFrame]
"""Returns validated measurements of files, folders or archives under a campaign name; see `Format`.

A file that is damaged, of another format, contradicts itself or what is given, or leaves blank what is not given is
refused with a `SchemaError` that names file, line and field.
"""


@dataclass(frozen=True)
class Format:
    """A published benchmark format and its importer.

    Parameters
    ----------
    name, title
        Key in the registry, and what a person calls it.
    delivers
        Outcome columns of the measurement table that its files can fill.
    statistics
        Statistics that its rows hold.
    recognises
        Says by the content of one file whether it is in this format; never raises for a readable file.
    read
        Returns validated measurements of files, folders or archives under a campaign name; what the user gives
        fills the cells that the files leave blank.
    suffixes
        Ends of the names that count within folders and archives.
    conversions
        For each column of `delivers`, the field it is read from and what is done to it.
    """

    name: str
    title: str
    delivers: tuple[str, ...]
    statistics: tuple[str, ...]
    recognises: Callable[[Path], bool]
    read: Read
    suffixes: tuple[str, ...] = (".csv",)
    conversions: Mapping[str, str] = field(default_factory=dict)
