"""Importers of published benchmark formats: files in, rows of the measurement table out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.data.errors import SchemaError, UnknownNameError
from roofcast.data.formats import llm_pilot, roofcast_csv
from roofcast.data.formats.format import Format, Progress, no_progress
from roofcast.data.formats.sources import files_of

FORMATS: Final[dict[str, Format]] = {
    "llm_pilot": llm_pilot.FORMAT,
    "roofcast_csv": roofcast_csv.FORMAT,
}


def read_measurements(
    format_name: str | None,
    paths: Sequence[Path],
    campaign: str | None = None,
    progress: Progress = no_progress,
) -> pd.DataFrame:
    """Return the measurements of benchmark files; all of them or, on the first fault, none.

    Parameters
    ----------
    format_name
        A name in `FORMATS`; None to tell by the content of the first file.
    paths
        Files, folders, or archives where the format is published as one.
    campaign
        Name under which the rows are kept, where they carry none; the format's name if None.
    progress
        Wraps the files while they are read.

    Raises
    ------
    UnknownNameError
        If there is no such format.
    SchemaError
        If a file is missing, empty, truncated, binary or in another format; names file and line.
    """
    chosen = detect_format(paths) if format_name is None else FORMATS.get(format_name)
    if chosen is None:
        raise UnknownNameError("format", str(format_name), FORMATS)
    return chosen.read(paths, campaign or chosen.name, progress)


def detect_format(paths: Sequence[Path]) -> Format:
    """Return the format of the first file, told by its content.

    Raises
    ------
    SchemaError
        If the file is missing or empty, or no format recognises it.
    """
    file = files_of(paths)[0]
    for candidate in FORMATS.values():
        if candidate.recognises(file):
            return candidate
    is_empty = file.stat().st_size == 0
    problem = "is empty" if is_empty else f"is in none of the known formats: {', '.join(FORMATS)}"
    raise SchemaError("", problem, file.name)
