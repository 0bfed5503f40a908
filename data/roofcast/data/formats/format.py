"""What every importer of published benchmark files offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from roofcast.data.formats.sources import Source

Progress = Callable[[Iterable[Source]], Iterable[Source]]
"""Wraps the files while they are read, to show how far the import is; `rich.progress.track` fits."""


def no_progress(sources: Iterable[Source]) -> Iterable[Source]:
    """Return the files as they are: the `Progress` that shows nothing."""
    return sources


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
        Returns validated measurements of files, folders or archives under a campaign name.
    """

    name: str
    title: str
    delivers: tuple[str, ...]
    statistics: tuple[str, ...]
    recognises: Callable[[Path], bool]
    read: Callable[[Sequence[Path], str, Progress], pd.DataFrame]
