"""Interface of an importer: one `Format` for each published benchmark format."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.data.importers.name_check import NameCheck
from roofcast.data.importers.sources import Source, iter_sources
from roofcast.data.specs import STATISTICS

Progress = Callable[[Iterable[Source]], Iterable[Source]]
"""Wraps the files while they are read, to show progress; `rich.progress.track` fits."""

Overrides = Mapping[str, object]
"""Values that the user sets for columns of the measurement table. See `importers.overrides`."""

NO_OVERRIDES: Final[Overrides] = {}


def no_progress(sources: Iterable[Source]) -> Iterable[Source]:
    """Return the files unchanged: the `Progress` that shows nothing."""
    return sources


Read = Callable[[Iterable[Source], str, Overrides, NameCheck], pd.DataFrame]
"""Reads open files; returns validated measurements, under a campaign name where they have none.

It gives the names of each row to the name check before the row is validated.

It raises a `SchemaError` with file, line and field for a file that is damaged, of another format, contradicts itself
or an override, or leaves a required column blank that no override sets.
"""


@dataclass(frozen=True)
class Format:
    """A published benchmark format.

    Parameters
    ----------
    name, title
        Key in the registry, and name for people.
    recognises
        Returns whether a file is in this format, by its first bytes; never raises.
    conversions
        By outcome column that its files can fill: the source field, and its conversion.
    suffixes
        File name suffixes that are read within folders and archives.
    statistics
        Statistics of its rows.
    select
        Returns the files to read of the user's paths; all of them by default.
    opened
        Opens the files, where a file is read with another.
    """

    name: str
    title: str
    recognises: Callable[[bytes], bool]
    read: Read
    conversions: Mapping[str, str]
    suffixes: tuple[str, ...] = (".csv",)
    statistics: tuple[str, ...] = STATISTICS
    select: Callable[[Sequence[Path]], Sequence[Path]] = list
    opened: Callable[[Sequence[Path]], Generator[Source, None, None]] | None = None

    @property
    def delivers(self) -> tuple[str, ...]:
        """Outcome columns of the measurement table that its files can fill."""
        return tuple(self.conversions)

    def open(self, paths: Sequence[Path]) -> Generator[Source, None, None]:
        """Yield the open files of the paths; close the generator where reading may fail."""
        return self.opened(paths) if self.opened else iter_sources(self.select(paths), *self.suffixes)
