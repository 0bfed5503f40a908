"""Interface of an importer: one `Format` for each published benchmark format."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from roofcast.data.errors import SchemaError
from roofcast.data.importers.client_runs import Run, table_of_runs
from roofcast.data.importers.fact_tables import fact_table
from roofcast.data.importers.json_input import begins_json
from roofcast.data.importers.name_check import NameCheck
from roofcast.data.importers.overrides import Overrides
from roofcast.data.importers.sources import Source, iter_sources
from roofcast.data.specs import STATISTICS

Progress = Callable[[Iterable[Source]], Iterable[Source]]
"""Wraps the files while they are read, to show progress; `rich.progress.track` fits."""


def no_progress(sources: Iterable[Source]) -> Iterable[Source]:
    """Return the files unchanged: the `Progress` that shows nothing."""
    return sources


Read = Callable[[Iterable[Source], str, Overrides, NameCheck], pd.DataFrame]
"""Reads open files; returns validated measurements, under a campaign name where they have none.

It gives the names of each row to the name check before the row is validated.
"""


@dataclass(frozen=True)
class Format:
    """A published benchmark format; its table in ``formats.toml`` has what it delivers.

    - `runs`: Returns the runs of an open file; or `read` does all, where rows are no runs or need other files.
    - `also`: Whether a file without its `marks` is in this format, by its first bytes; never raises.
    - `select`: Returns the files to read of the user's paths, which have the suffixes within folders; all by default.
    - `opened`: Opens the files, where a file is read with another.
    """

    name: str
    runs: Callable[[Source], Iterable[Run]] | None = None
    also: Callable[[bytes], bool] | None = None
    read: Read | None = None
    select: Callable[..., Sequence[Path]] | None = None
    opened: Callable[..., Generator[Source, None, None]] | None = None

    def recognises(self, start: bytes) -> bool:
        """Return whether a file is in this format, by its first bytes."""
        marks = self._facts.get("marks", ())
        return any(has_mark(start, **mark) for mark in marks) or (self.also is not None and self.also(start))

    @property
    def title(self) -> str:
        """Name for people."""
        return str(self._facts["title"])

    @property
    def conversions(self) -> Mapping[str, str]:
        """By outcome column that its files can fill: the source field, and its conversion."""
        return dict(self._facts["conversions"])

    @property
    def suffixes(self) -> tuple[str, ...]:
        """File name suffixes that are read within folders and archives."""
        return tuple(self._facts["suffixes"])

    @property
    def statistics(self) -> tuple[str, ...]:
        """Statistics of its rows."""
        return tuple(self._facts.get("statistics", STATISTICS))

    @property
    def delivers(self) -> tuple[str, ...]:
        """Outcome columns of the measurement table that its files can fill."""
        return tuple(self.conversions)

    def open(self, paths: Sequence[Path]) -> Generator[Source, None, None]:
        """Yield the open files of the paths; close the generator where reading may fail."""
        if self.opened:
            return self.opened(paths, *self.suffixes)
        return iter_sources(self.select(paths, *self.suffixes) if self.select else paths, *self.suffixes)

    def rows(self, sources: Iterable[Source], campaign: str, overrides: Overrides, names: NameCheck) -> pd.DataFrame:
        """Return the validated measurements of open files: of each run a row for each statistic.

        Raises `SchemaError` with file, line and field for a file that is damaged, of another format, contradicts
        itself or an override, or leaves a required column blank that no override sets.
        """
        if self.read:
            return self.read(sources, campaign, overrides, names)
        runs = [run for source in sources for run in self._runs_of(source)]
        return table_of_runs(runs, campaign, overrides, names)

    def _runs_of(self, source: Source) -> list[Run]:
        runs = list(self.runs(source)) if self.runs else []
        if not runs:
            raise SchemaError("", "holds no run", source.name)
        return runs

    @property
    def _facts(self) -> dict[str, Any]:
        return dict(fact_table("formats")[self.name])


def has_mark(
    start: bytes, names: Sequence[str] = (), texts: Sequence[str] = (), opening: str = "{", absent: str = ""
) -> bool:
    """Return whether the start of a file has a mark of ``formats.toml``."""
    is_json = not names or begins_json(start, *names, opening=tuple(one.encode() for one in opening))
    has_texts = all(text.encode() in start for text in texts)
    return is_json and has_texts and not (absent and absent.encode() in start)
