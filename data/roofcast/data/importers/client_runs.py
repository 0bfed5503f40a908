"""Runs of a benchmark client, which every client's importer returns, and their rows of the measurement table."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import pandas as pd

from roofcast.data.errors import MAX_PROBLEM, SchemaError
from roofcast.data.importers.name_check import NameCheck
from roofcast.data.importers.overrides import Overrides, check_required, fill_blanks
from roofcast.data.importers.run_plausibility import Statistics, check_plausible
from roofcast.data.measurements.schema import OUTCOME_COLUMNS
from roofcast.data.measurements.table_rules import raise_all
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.specs import STATISTICS

OPEN_LOOP_SHORTFALL: Final = 0.9
"""An open loop that reached less than this share of its request rate gets a note."""

_DRIVE: Final = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True)
class Run:
    """One run of a client.

    - `place`, `line`: File and line, for messages; line 0 if the file is one document.
    - `cells`: Columns that all rows of the run share; overrides fill the blank ones.
    - `statistics`: See `Statistics`.
    - `totals`: Throughputs and other outcomes of the run as a whole, for the row of statistic `mean`.
    - `derived`: Outcome columns that were computed from others.
    """

    place: str
    line: int
    cells: Mapping[str, Any]
    statistics: Statistics
    totals: Mapping[str, float] = field(default_factory=dict)
    derived: tuple[str, ...] = ()


def table_of_runs(runs: Sequence[Run], campaign: str, overrides: Overrides, names: NameCheck) -> pd.DataFrame:
    """Return the measurements of the runs: one row for each statistic with outcomes.

    A run without a completed request gives one row without outcomes. An open loop that did not reach its request
    rate gets a note.

    Raises `SchemaError` if a run contradicts an override or itself, leaves a required column blank, or breaks the
    schema of measurements; names file, line and field.
    """
    rows_by_run = [_rows_of(run, campaign, overrides, names) for run in runs]
    try:
        table = pd.DataFrame([row for rows in rows_by_run for row in rows])
        return validate_measurements(table, runs[0].place)
    except SchemaError:
        errors = [*islice(_row_errors(runs, rows_by_run), MAX_PROBLEM - 1)]  # a row takes milliseconds
        if len(errors) == MAX_PROBLEM - 1:
            errors.append(SchemaError("", "further rows are not checked"))
        raise_all(errors)
        raise


def _row_errors(runs: Sequence[Run], rows_by_run: Iterable[Iterable[dict[str, Any]]]) -> Iterator[SchemaError]:
    for run, rows in zip(runs, rows_by_run, strict=True):
        for row in rows:
            try:
                validate_measurements(pd.DataFrame([row]), run.place, run.line)
            except SchemaError as error:
                yield error


def _rows_of(run: Run, campaign: str, overrides: Overrides, names: NameCheck) -> list[dict[str, Any]]:
    cells = fill_blanks(run.cells, overrides, run.place, run.line) | {"campaign": campaign}
    names.check(cells, run.place, run.line)
    reached_per_s = run.totals.get("request_throughput_per_s", math.nan)
    cells = join_cells(cells, {"note": _rate_note(float(cells.get("request_rate") or math.nan), reached_per_s)})
    if not cells.get("load"):
        is_closed = math.isnan(float(cells.get("request_rate") or math.nan))
        cells["load"] = "closed_loop" if is_closed else "open_loop"
    check_required(cells, run.place, run.line)
    if cells.get("status", "ok") != "ok":
        return [cells | {"statistic": "mean"}]
    by_statistic = {name: dict(run.statistics.get(name, {})) for name in STATISTICS}
    by_statistic["mean"] |= run.totals
    derived, note = _blank_zeros(by_statistic)
    cells = join_cells(cells, {"note": note})
    check_plausible(cells, by_statistic, run.place, run.line)
    rows = []
    for name, outcomes in by_statistic.items():
        known = [c for c in OUTCOME_COLUMNS if not math.isnan(outcomes.get(c, math.nan))]
        if known:
            names_derived = " ".join(c for c in (*run.derived, *derived) if c in known)
            rows.append(cells | outcomes | {"statistic": name, "derived": names_derived})
    if not rows:
        raise SchemaError("", "holds no latency and no throughput of a completed request", run.place, run.line)
    return rows


def _blank_zeros(by_statistic: Mapping[str, dict[str, float]]) -> tuple[tuple[str, ...], str]:
    zeros = []
    for column in ("ttft_s", "nttft_s_per_token", "itl_s", "tpot_s", "e2e_s"):
        values = [one[column] for one in by_statistic.values() if not math.isnan(one.get(column, math.nan))]
        if 0 in values and (column not in ("itl_s", "tpot_s") or not any(values)):  # gaps within a chunk are 0
            zeros.append(column)
            for one in by_statistic.values():
                one[column] = one.get(column) or math.nan
    derived = ("tpot_s",) if "ttft_s" in zeros else ()
    counts = "; tpot_s counts the first token" if derived else ""
    return derived, f"nothing was streamed: {', '.join(zeros)} of 0 left blank{counts}" if zeros else ""


def load_cells(concurrency: float, request_rate: float) -> dict[str, Any]:
    """Return the columns of a load; NaN where concurrency or rate is not limited.

    A rate makes an open loop, with a note of its concurrency limit; without rate and concurrency the load is offline.

    Examples
    --------
    >>> load_cells(float("nan"), 4.0)
    {'load': 'open_loop', 'request_rate': 4.0}
    """
    if not math.isnan(request_rate):
        note = {} if math.isnan(concurrency) else {"note": f"at most {concurrency:g} requests in flight"}
        return {"load": "open_loop", "request_rate": request_rate, **note}
    return {"load": "offline"} if math.isnan(concurrency) else {"load": "closed_loop", "concurrency": concurrency}


def model_cells(name: str) -> dict[str, str]:
    """Return the columns of a model's name; of a path, which names no model, the last part becomes a note.

    Examples
    --------
    >>> model_cells("meta-llama/Llama-2-7b-hf")
    {'model': 'meta-llama/Llama-2-7b-hf'}
    >>> model_cells("./tiny-llama")
    {'note': 'served as tiny-llama'}
    """
    is_path = name.startswith((".", "/", "~")) or "\\" in name or name.count("/") > 1 or _DRIVE.match(name)
    if not is_path:
        return {"model": name} if name else {}
    last = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    return {"note": f"served as {last[:200]}"} if last.strip("./~") else {}


def _rate_note(request_rate: float, reached_per_s: float) -> str:
    if not reached_per_s < OPEN_LOOP_SHORTFALL * request_rate:
        return ""
    return f"asked for {request_rate:.3g} requests/s, reached {reached_per_s:.3g}"


def join_cells(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of all parts, with their notes joined.

    Examples
    --------
    >>> join_cells({"tp": 2, "note": "a"}, {"note": ""}, {"note": "b"})
    {'tp': 2, 'note': 'a; b'}
    """
    cells: dict[str, Any] = {}
    for part in parts:
        notes = [str(cells.get("note") or ""), str(part.get("note") or "")]
        cells |= part
        cells |= {"note": "; ".join(filter(None, notes))} if any(notes) else {}
    return cells
