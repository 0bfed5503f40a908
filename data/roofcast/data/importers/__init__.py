"""Importers: benchmark files in, validated rows of the measurement table out; one module or folder a format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.data.errors import SchemaError, UnknownNameError
from roofcast.data.importers import roofcast_csv
from roofcast.data.importers.aiperf import artifacts
from roofcast.data.importers.bench_clients import sglang, vllm
from roofcast.data.importers.format import NO_OVERRIDES, Format, Overrides, Progress, no_progress
from roofcast.data.importers.guidellm import report
from roofcast.data.importers.inferencemax import results
from roofcast.data.importers.llm_perf import benchmark
from roofcast.data.importers.llm_pilot import runs
from roofcast.data.importers.mlperf import summary
from roofcast.data.importers.name_check import NameCheck
from roofcast.data.importers.overrides import check_overrides
from roofcast.data.importers.sources import files_of, iter_sources
from roofcast.data.json_input import read_json

FORMATS: Final[dict[str, Format]] = {
    "llm_pilot": runs.FORMAT,
    "roofcast_csv": roofcast_csv.FORMAT,
    "vllm_bench": vllm.FORMAT,
    "sglang_bench": sglang.FORMAT,
    "guidellm": report.FORMAT,
    "aiperf": artifacts.FORMAT,
    "inferencemax": results.FORMAT,
    "mlperf_summary": summary.FORMAT,
    "llm_perf": benchmark.FORMAT,
}


def read_measurements(
    format_name: str | None,
    paths: Sequence[Path],
    campaign: str | None = None,
    progress: Progress = no_progress,
    overrides: Overrides | None = None,
    *,
    names: NameCheck | None = None,
) -> pd.DataFrame:
    """Return the measurements of benchmark files: all of them or, on the first fault, none.

    Parameters
    ----------
    format_name
        A name in `FORMATS`; None to detect the format, which must be the same for all files.
    paths
        Files, folders, or archives where the format is published as one.
    campaign
        Campaign of the rows without one; the format's name by default.
    overrides
        Column to value, for the cells that the files leave blank: a benchmark client does not know the accelerator
        behind the address it measures. ``column:name in the file`` replaces that name by the value.
    names
        Check of the names in the rows; None to admit any.

    Raises
    ------
    UnknownNameError
        If there is no such format, or an override names no column.
    SchemaError
        If a file is missing, empty, truncated, binary or in another format, contradicts an override, or leaves a
        required column blank, or `names` refuses a name; names file, line and field.
    """
    chosen = detect_format(paths) if format_name is None else FORMATS.get(format_name)
    if chosen is None:
        raise UnknownNameError("format", str(format_name), FORMATS)
    checked, names = check_overrides(overrides or NO_OVERRIDES), names or NameCheck()
    with names.all_errors():
        return chosen.read(paths, campaign or chosen.name, progress, checked, names)


def detect_format(paths: Sequence[Path]) -> Format:
    """Return the one format of the files, by their content; files in no format are ignored.

    Raises
    ------
    SchemaError
        If a path is missing, a file is empty or a damaged archive, no format recognises any file, or two files are
        in different formats.
    """
    suffixes = sorted({suffix for candidate in FORMATS.values() for suffix in candidate.suffixes})
    files = files_of(paths, *suffixes)
    problems: list[SchemaError] = []
    examples: dict[str, Path] = {}
    for file in files:
        name = _format_of(file, problems)
        if name:
            examples.setdefault(name, file)
    if len(examples) > 1:
        listed = ", ".join(f"{file.name} ({name})" for name, file in examples.items())
        raise SchemaError("", f"the files are in several formats: {listed}; import each format by itself")
    if examples:
        return FORMATS[next(iter(examples))]
    if problems:
        raise problems[0]
    if files[0].suffix == ".json":
        for source in iter_sources(files[:1]):
            read_json(source)  # a truncated file is in no format: this raises an error with the line
    is_empty = files[0].stat().st_size == 0
    problem = "is empty" if is_empty else f"is in none of the known formats: {', '.join(FORMATS)}"
    raise SchemaError("", problem, files[0].name)


def _format_of(file: Path, problems: list[SchemaError]) -> str:
    """Return the name of the first format that recognises a file, empty if none does; append what was wrong."""
    for name, candidate in FORMATS.items():
        try:
            if candidate.recognises(file):
                return name
        except SchemaError as error:
            problems.append(error)
    return ""
