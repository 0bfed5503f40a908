"""Inference campaign of a recipe: its rows under catalogue names, with the rules that hold for all campaigns."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pandas as pd

from builders.build_result import REJECTED_COLUMNS, BuildResult
from builders.columns import is_blank
from builders.figures import round_figure
from builders.published import Record, RejectionError
from builders.recipe import Recipe, Row, RowMaker
from roofcast.data.catalog import load_catalog
from roofcast.data.errors import SchemaError, UnknownNameError
from roofcast.data.importers.run_plausibility import check_plausible
from roofcast.data.measurements.schema import NUMBER_COLUMNS, OUTCOME_COLUMNS
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.specs import STATISTICS


def assemble(recipe: Recipe, root: Path) -> BuildResult:
    """Build a campaign from the files under `root`.

    Rules that hold for all campaigns, after those of the recipe: ``unknown_model``, ``unknown_accelerator``,
    ``no_outcome``, ``implausible`` (the importers' rules, see `contradiction_of`) and ``exact_repeat``.

    Raises `SchemaError` if a file is missing or malformed, or a row breaks the schema.
    """
    maker, seen = RowMaker(recipe, NUMBER_COLUMNS), set[str]()
    return collect(recipe, root, lambda record: _accepted_rows(recipe, record, maker, seen), validate_measurements)


def collect(
    recipe: Recipe,
    root: Path,
    rows_of: Callable[[Record], Iterable[Row]],
    validate: Callable[[pd.DataFrame, str], pd.DataFrame],
) -> BuildResult:
    """Return the validated rows of the records under `root`, and the records that `rows_of` rejects."""
    table: list[Row] = []
    rejected: list[tuple[str, str, str]] = []
    n_read = 0
    for record in recipe.records(root):
        n_read += record.n_published
        try:
            table += rows_of(record)
        except RejectionError as error:
            rejected += [(record.reference, error.reason, error.detail)] * record.n_published
    accepted = validate(pd.DataFrame(table), recipe.name)
    return BuildResult(accepted, n_read, pd.DataFrame(rejected, columns=list(REJECTED_COLUMNS), dtype=str))


def _accepted_rows(recipe: Recipe, record: Record, maker: RowMaker, seen: set[str]) -> list[Row]:
    own = {"campaign": recipe.name}
    stack = {"stack": recipe.stack or recipe.name}
    rows = [{**stack, **row, **catalog_ids(recipe, row), **own} for row in maker.rows(record)]
    if not rows:
        raise RejectionError("no_outcome", "the row holds no figure")
    contradiction = contradiction_of(rows)
    if contradiction:
        raise RejectionError("implausible", contradiction)
    stored = [{name: _stored_value(name, value) for name, value in row.items()} for row in rows]
    run = repr([sorted(row.items(), key=lambda item: item[0]) for row in stored])
    if run in seen:
        raise RejectionError("exact_repeat", "the same run to the last digit")
    seen.add(run)
    return stored


def catalog_ids(recipe: Recipe, row: Row) -> Row:
    """Return the catalogue names of the model and the accelerator of a row, or reject it."""
    catalog = load_catalog()
    theirs = {name: str(row.get(name, "")) for name in ("model", "accelerator")}
    ours = {name: recipe.names.get(name, {}).get(text, text) for name, text in theirs.items()}
    try:
        return {"model": catalog.model(ours["model"]).id, "accelerator": catalog.accelerator(ours["accelerator"]).id}
    except UnknownNameError as error:
        raise RejectionError(f"unknown_{error.field}", theirs[error.field] or "not stated") from error


def contradiction_of(rows: Iterable[Row]) -> str:
    """Return the contradiction between the numbers of a run, by the importers' rules; empty if there is none.

    `rows`: rows of one or several runs, one per statistic; rows that differ only in outcomes and statistic are one
    run.

    Examples
    --------
    >>> contradiction_of([{"ttft_s": 1.0, "tpot_s": 20.0, "e2e_s": 3.0, "n_output_token": 100}])[:55]
    'E2E of 3 s is far from TTFT + TPOT x (output tokens - 1'
    """
    runs: dict[str, tuple[Row, dict[str, Mapping[str, float]]]] = {}
    for row in rows:
        cells = {name: value for name, value in row.items() if name not in OUTCOME_COLUMNS and name != "statistic"}
        outcomes = {name: float(str(value)) for name, value in row.items() if _is_outcome(name, value)}
        runs.setdefault(repr(sorted(cells.items())), (cells, {}))[1][str(row.get("statistic", "mean"))] = outcomes
    for cells, statistics in runs.values():
        try:
            check_plausible(cells, statistics, "")
        except SchemaError as error:
            return error.problem
    return ""


def rows_by_statistic(common: Row, outcomes: Mapping[str, Row]) -> list[Row]:
    """Return one row per statistic that has a figure, in the order of the schema.

    `common`: cells that all rows share. `outcomes`: outcome cells by statistic.

    Examples
    --------
    >>> rows_by_statistic({"tp": 1}, {"p50": {"ttft_s": 0.2}, "p99": {"ttft_s": float("nan")}})
    [{'tp': 1, 'statistic': 'p50', 'ttft_s': 0.2}]
    """
    return [
        {**common, "statistic": statistic, **outcomes[statistic]}
        for statistic in STATISTICS
        if any(_is_outcome(name, value) for name, value in outcomes.get(statistic, {}).items())
    ]


def _is_outcome(name: str, value: object) -> bool:
    return name in OUTCOME_COLUMNS and isinstance(value, float) and not is_blank(value)


def _stored_value(name: str, value: object) -> object:
    return round_figure(value) if name in NUMBER_COLUMNS and isinstance(value, float) else value
