"""Interface of an importer: one `Format` for each published benchmark format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.data.importers.name_check import NameCheck
from roofcast.data.importers.sources import Source

Progress = Callable[[Iterable[Source]], Iterable[Source]]
"""Wraps the files while they are read, to show progress; `rich.progress.track` fits."""

Overrides = Mapping[str, object]
"""Values that the user sets for columns of the measurement table. See `importers.overrides`."""

NO_OVERRIDES: Final[Overrides] = {}


def no_progress(sources: Iterable[Source]) -> Iterable[Source]:
    """Return the files unchanged: the `Progress` that shows nothing."""
    return sources


Read = Callable[[Sequence[Path], str, Progress, Overrides, NameCheck | None], pd.DataFrame]
"""Reads files, folders or archives; returns validated measurements, under a campaign name where they have none.

It gives the names of each row to the name check before the row is validated.

It raises a `SchemaError` with file, line and field for a file that is damaged, of another format, contradicts itself
or an override, or leaves a required column blank that no override sets.
"""


@dataclass(frozen=True)
class Format:
    """A published benchmark format and its importer.

    Parameters
    ----------
    name, title
        Key in the registry, and name for people.
    delivers
        Outcome columns of the measurement table that its files can fill.
    statistics
        Statistics of its rows.
    recognises
        Returns whether one file is in this format, by its content; never raises for a readable file.
    suffixes
        File name suffixes that are read within folders and archives.
    conversions
        By column of `delivers`: the source field, and its conversion.
    """

    name: str
    title: str
    delivers: tuple[str, ...]
    statistics: tuple[str, ...]
    recognises: Callable[[Path], bool]
    read: Read
    suffixes: tuple[str, ...] = (".csv",)
    conversions: Mapping[str, str] = field(default_factory=dict)
