"""Plans: runs of a load generator, each of one pair of request lengths and one load."""

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, SchemaError
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.serving.predict.next_measurements import RANKED_METRICS
from roofcast.serving.predict.question_rows import table_from_rows
from roofcast.serving.predict.row_checks import check_table
from roofcast.training.explain.measure_next import rank_measurements
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor

COLUMNS: Final = ("n_input_token", "n_output_token", "concurrency", "request_rate", "n_request")
"""Columns of a plan; a row has `concurrency` or `request_rate`, and `n_request` may be blank."""

MIN_REQUEST: Final = 20
"""Least number of requests of a run, by default."""

REQUEST_PER_STREAM: Final = 5
"""Requests of each stream of a closed loop, by default."""

OPEN_LOOP_S: Final = 60.0
"""Time in which the requests of an open loop arrive, by default."""

MAX_RUN: Final = 10_000
_WHOLE: Final = ("n_input_token", "n_output_token", "concurrency", "n_request")


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run of a plan: a closed loop of some concurrency, or else an open loop of some rate.

    Examples
    --------
    >>> PlannedRun(128, 32, concurrency=4, n_request=20).name
    'in128-out32-c4-n20'
    >>> PlannedRun(128, 32, request_rate=0.5, n_request=30).name
    'in128-out32-r0.5-n30'
    """

    n_input_token: int
    n_output_token: int
    concurrency: int = 0
    request_rate: float = 0.0
    n_request: int = MIN_REQUEST

    @property
    def name(self) -> str:
        """Name of the run's files."""
        load = f"c{self.concurrency}" if self.concurrency else f"r{self.request_rate:g}"
        return f"in{self.n_input_token}-out{self.n_output_token}-{load}-n{self.n_request}"

    @property
    def cells(self) -> dict[str, float]:
        """Columns of a prediction input."""
        load = {"concurrency": self.concurrency} if self.concurrency else {"request_rate": self.request_rate}
        lengths = {"n_input_token": self.n_input_token, "n_output_token": self.n_output_token}
        return {**lengths, **load, "n_request": self.n_request}


def parse_plan(rows: Sequence[Mapping[str, Any]], source: str = "", lines: Sequence[int] = ()) -> list[PlannedRun]:
    """Return the runs of the rows of a plan, without repeats.

    Raises `SchemaError` if there is no row, a column is unknown, or a cell is wrong; names line and field.
    """
    for name in rows[0] if rows else ():
        if name not in COLUMNS:
            raise SchemaError(name, f"is no column of a plan; they are {', '.join(COLUMNS)}", source, 1)
    runs = [_parse_row(row, source, lines[i] if lines else i + 1) for i, row in enumerate(rows)]
    if not runs:
        raise SchemaError("", "has no row; give at least one run", source)
    return without_repeats(runs)


def _parse_row(row: Mapping[str, Any], source: str, line: int) -> PlannedRun:
    try:
        cells = {name: _number(name, row.get(name)) for name in COLUMNS}
        for name in ("n_input_token", "n_output_token"):
            if not cells[name]:
                raise InputError(name, "is blank; give a number of tokens such as 256")
        if bool(cells["concurrency"]) == bool(cells["request_rate"]):
            raise InputError("concurrency", "give either concurrency or request_rate")
    except InputError as error:
        raise SchemaError(error.field, error.problem, source, line) from error
    return _planned_run(cells)


def grid(lengths: Mapping[str, str], loads: Mapping[str, str], n_request: str = "") -> list[PlannedRun]:
    """Return the runs of all combinations of lists such as ``128,1024``, by input tokens, output tokens and load.

    `lengths`: lists of `n_input_token` and `n_output_token`. `loads`: lists of `concurrency` and `request_rate`, one
    of which may be empty. Raises `InputError` if a list is empty or malformed, or the runs are too many.
    """
    values = {name: _numbers(name, text) for name, text in {**lengths, **loads}.items()}
    for name in lengths:
        if not values[name]:
            raise InputError(name, "is missing; give one or more, such as 128,1024, or a file with --plan")
    if not any(values[name] for name in loads):
        raise InputError("concurrency", "is missing; give one or more, such as 1,8,32, or a request rate")
    either = [(name, value) for name in loads for value in values[name]]
    n_run = math.prod(len(values[name]) for name in lengths) * len(either)
    if n_run > MAX_RUN:
        raise InputError("concurrency", f"the plan has {n_run} runs; at most {MAX_RUN} are allowed")
    common = {"n_request": _number("n_request", n_request)}
    runs = [
        _planned_run(common | dict(zip(lengths, pair, strict=True)) | {name: value})
        for pair in itertools.product(*(values[name] for name in lengths))
        for name, value in either
    ]
    return without_repeats(runs)


def without_repeats(runs: Iterable[PlannedRun]) -> list[PlannedRun]:
    """Return the first run of each name."""
    by_name: dict[str, PlannedRun] = {}
    for run in runs:
        by_name.setdefault(run.name, run)
    return [*by_name.values()]


def _numbers(name: str, text: str) -> list[float]:
    values = [_number(name, part) for part in text.split(",")] if text.strip() else []
    if 0.0 in values:
        raise InputError(name, f"must be numbers between commas, got {text[:60]!r}")
    return values


def _number(name: str, cell: object) -> float:
    text = "" if cell is None else str(cell).strip()
    if not text:
        return 0.0
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf or (name in _WHOLE and number % 1):
        kind = "whole number" if name in _WHOLE else "number"
        raise InputError(name, f"must be a {kind} greater than 0, got {text[:60]!r}")
    return number


def _planned_run(cells: Mapping[str, float]) -> PlannedRun:
    concurrency, rate = int(cells.get("concurrency", 0)), cells.get("request_rate", 0.0)
    by_load = REQUEST_PER_STREAM * concurrency if concurrency else math.ceil(OPEN_LOOP_S * rate)
    n_request = int(cells.get("n_request", 0)) or max(MIN_REQUEST, by_load)
    return PlannedRun(int(cells["n_input_token"]), int(cells["n_output_token"]), concurrency, rate, n_request)


SETUP_FILE: Final = "setup.json"
CHOICE_FILE: Final = "plan.json"


def check_setup(folder: Path, setup: Mapping[str, str]) -> None:
    """Refuse a folder of another setup.

    Raises `InputError` if the folder has reports of another setup, or cannot be read.
    """
    before = _read(folder / SETUP_FILE, "choose another folder") or dict(setup)
    for name in sorted({*before, *setup}):
        if before.get(name) != setup.get(name):
            values = f"{name}={before.get(name, '')!r}, now {setup.get(name, '')!r}"
            raise InputError("out", f"{folder} has runs of another setup ({values}); choose another folder")


def save_setup(folder: Path, setup: Mapping[str, str]) -> None:
    """Write the setup to the folder, which is made; raises as `check_setup`, and if the folder cannot be written."""
    check_setup(folder, setup)
    _write(folder / SETUP_FILE, dict(setup))


@dataclass(frozen=True, slots=True)
class Choice:
    """Runs of a plan that a budget admits, given a stack profile; saved, since the profile grows with each run.

    `stack`: name of the profile; may be empty.
    """

    plan: Sequence[PlannedRun]
    budget: int
    stack: str

    def load(self, folder: Path) -> list[PlannedRun] | None:
        """Return the runs chosen earlier for the same plan, budget and profile, None if there are none.

        Raises `InputError` if the file is damaged.
        """
        saved = _read(folder / CHOICE_FILE, "delete it to choose again")
        by_name = {run.name: run for run in self.plan}
        chosen = saved.pop("chosen", None)
        if saved != self._key() or not isinstance(chosen, list) or not set(chosen) <= set(by_name):
            return None
        return [by_name[name] for name in chosen]

    def save(self, folder: Path, chosen: Sequence[PlannedRun]) -> None:
        """Write the chosen runs to the folder."""
        _write(folder / CHOICE_FILE, {**self._key(), "chosen": [run.name for run in chosen]})

    def _key(self) -> dict[str, object]:
        return {"plan": [run.name for run in self.plan], "budget": self.budget, "stack": self.stack}


def _read(file: Path, cure: str) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unusable(file.parent, error) from error
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise InputError("out", f"{file} is damaged; {cure}")
    return content


def _write(file: Path, content: Mapping[str, object]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content, indent=1), encoding="utf-8")
    except OSError as error:
        raise _unusable(file.parent, error) from error


def _unusable(folder: Path, error: OSError) -> InputError:
    return InputError("out", f"{folder} cannot be used: {error.strerror or error}")


def planned_inputs(runs: Sequence[PlannedRun], cells: Mapping[str, object], catalog: Catalog) -> pd.DataFrame:
    """Return the prediction input of each run, of shape (n_run, n_column).

    `cells`: columns that all runs share, such as the model and the accelerator. Raises `SchemaError` if the model or
    the accelerator is missing or unknown, or a run is impossible, such as one beyond the context.
    """
    table, problems = check_table(table_from_rows([{**cells, **run.cells} for run in runs]), catalog)
    for run, problem in zip(runs, problems, strict=True):
        if problem is not None:
            raise problem.error(run.name)
    return table


def choose_runs(
    runs: Sequence[PlannedRun],
    inputs: pd.DataFrame,
    catalog: Catalog,
    predictor: RoofcastPredictor,
    *,
    points: CalibrationPoints | None,
    n: int,
) -> list[PlannedRun]:
    """Return the n runs that would narrow the intervals of all most, given earlier measurements, the best first.

    `inputs`: shape (n_run, n_column): result of `planned_inputs`.
    """
    X = describe(inputs, catalog.models, catalog.accelerators)
    metrics = [metric for metric in RANKED_METRICS if metric in predictor.metrics_]
    ranked = rank_measurements(predictor.condition_on(points), X, metrics, n)
    return [runs[one.row] for one in ranked]


def predict_e2e(
    runs: Sequence[PlannedRun], inputs: pd.DataFrame, catalog: Catalog, predictor: RoofcastPredictor
) -> dict[str, float]:
    """Return the predicted mean latency of a request of each run, in seconds, by the run's name.

    `inputs`: shape (n_run, n_column): result of `planned_inputs`.
    """
    X = describe(inputs, catalog.models, catalog.accelerators)
    e2e_s = predictor.predict_distribution(X, metrics={"e2e_s"}).median["e2e_s"]
    return {run.name: float(value) for run, value in zip(runs, e2e_s, strict=True)}
