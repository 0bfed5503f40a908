"""Importers: benchmark files in, validated rows of the measurement table out; one module or folder a format."""

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.data.errors import SchemaError, UnknownNameError
from roofcast.data.importers import (
    aiperf,
    batch_benchmarks,
    bench_clients,
    guidellm,
    inference_perf,
    inferencemax,
    llama_bench,
    llm_perf,
    llm_pilot,
    mlperf,
    ollama_verbose,
    roofcast_csv,
    trtllm_bench,
)
from roofcast.data.importers.format import Format, Progress, no_progress
from roofcast.data.importers.json_input import read_json
from roofcast.data.importers.name_check import NameCheck
from roofcast.data.importers.overrides import Overrides, check_overrides
from roofcast.data.importers.sources import Source, files_of, is_compressed, iter_sources, start_of

_FORMATS: Final = (
    llm_pilot.FORMAT, roofcast_csv.FORMAT, bench_clients.VLLM, bench_clients.SGLANG, guidellm.FORMAT, aiperf.FORMAT,
    inferencemax.FORMAT, mlperf.FORMAT, llm_perf.FORMAT, llama_bench.FORMAT, trtllm_bench.FORMAT,
    inference_perf.FORMAT, batch_benchmarks.VLLM, batch_benchmarks.SGLANG, ollama_verbose.FORMAT,
)  # fmt: skip
FORMATS: Final[dict[str, Format]] = {one.name: one for one in _FORMATS}


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

    Raises `UnknownNameError` if there is no such format, or an override names no column. Raises `SchemaError` if a
    file is missing, empty, truncated, binary or in another format, contradicts an override, or leaves a required
    column blank, or `names` refuses a name; names file, line and field.

    - `format_name`: A name in `FORMATS`; None to detect the format, which must be the same for all files.
    - `paths`: Files, folders, or archives where the format is published as one.
    - `campaign`: Campaign of the rows without one; the format's name by default.
    - `overrides`: Column to value, for the cells that the files leave blank: a benchmark client does not know the
      accelerator behind the address it measures. ``column:name in the file`` replaces that name by the value.
    - `names`: Check of the names in the rows; None to admit any.
    """
    chosen = detect_format(paths) if format_name is None else _format(format_name)
    with contextlib.closing(chosen.open(paths)) as sources:
        return _read(chosen, progress(sources), campaign, overrides, names)


def read_upload(
    format_name: str | None,
    source: Source,
    campaign: str | None = None,
    overrides: Overrides | None = None,
    *,
    names: NameCheck | None = None,
) -> tuple[str, pd.DataFrame]:
    """Return the format's name and the measurements of one open file; see `read_measurements`.

    Raises `UnknownNameError` as of `read_measurements`; `SchemaError` also if the file is compressed.
    """
    start = source.start()
    if is_compressed(start):
        raise SchemaError("", "is compressed; send each file by itself, uncompressed", source.name)
    if format_name is None:
        chosen = next((one for one in FORMATS.values() if one.recognises(start)), None)
        if chosen is None:
            raise _unknown_format(source)
    else:
        chosen = _format(format_name)
    return chosen.name, _read(chosen, [source], campaign, overrides, names)


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise UnknownNameError("format", name, FORMATS)
    return FORMATS[name]


def _read(
    chosen: Format,
    sources: Iterable[Source],
    campaign: str | None,
    overrides: Overrides | None,
    names: NameCheck | None,
) -> pd.DataFrame:
    checked, names = check_overrides(overrides or {}), names or NameCheck()
    with names.all_errors():
        return chosen.rows(sources, campaign or chosen.name, checked, names)


def detect_format(paths: Sequence[Path]) -> Format:
    """Return the one format of the files, by their content; files in no format are ignored.

    Raises `SchemaError` if a path is missing, a file is empty or a damaged archive, no format recognises any file, or
    two files are in different formats.
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
    with contextlib.closing(iter_sources(files[:1], *suffixes)) as sources:
        raise _unknown_format(next(sources))


def _format_of(file: Path, problems: list[SchemaError]) -> str:
    for name, candidate in FORMATS.items():
        try:
            if candidate.recognises(start_of(file, *candidate.suffixes)):
                return name
        except SchemaError as error:
            problems.append(error)
    return ""


def _unknown_format(source: Source) -> SchemaError:
    if not source.start():
        return SchemaError("", "is empty", source.name)
    if source.name.lower().endswith(".json"):
        try:
            read_json(source)
        except SchemaError as error:
            return error
    cure = "write its figures as roofcast_csv: a CSV whose header has columns of the measurement table, such as"
    columns = "model,accelerator,n_accelerator,n_input_token,n_output_token,concurrency,ttft_s,tpot_s"
    problem = f"is in none of the known formats: {', '.join(FORMATS)}; {cure} {columns}"
    return SchemaError("", problem, source.name)
