"""Profiles: from the rows of a user to calibration points."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.measurements.schema import INPUT_COLUMNS, REFERENCE_METRICS, SCHEMA
from roofcast.serving.app_state.catalog.live_catalog import Config, LiveCatalog
from roofcast.serving.predict.question_rows import Problem, rows_from_table, table_from_rows
from roofcast.serving.predict.reference_rows import check_references, raise_first
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor

if TYPE_CHECKING:
    from roofcast.data.store.stack_profiles import StackProfiles, StoredProfile

Cells = Mapping[str, Any]

CENTRAL: Final = frozenset({"mean", "p50"})
"""Statistics that predictions are conditioned on: those of a run's tail follow from them."""

MAX_LINE_RATIO: Final = 20
"""Different lines of a CSV file over the rows of a profile, above which the file is refused unread."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_STORED: Final = (*INPUT_COLUMNS, *REFERENCE_METRICS)
_NAMING: Final = (
    "model", "accelerator", "n_accelerator", "n_input_token", "n_output_token", "concurrency", "request_rate",
    "statistic", *REFERENCE_METRICS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile that a predictor can be conditioned on.

    `points`: all rows with their descriptors. `central`: those that predictions are conditioned on: means and
    medians.
    """

    name: str
    rows: Sequence[Cells]
    points: CalibrationPoints
    central: CalibrationPoints
    is_shared: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileAdded:
    """Numbers of rows that were new to a profile, that it had already, and that it has now."""

    name: str
    n_new: int
    n_known: int
    n_row: int


def add_rows(
    profiles: StackProfiles,
    catalogs: LiveCatalog,
    predictor: RoofcastPredictor,
    rows: Sequence[Cells],
    configs: Iterable[tuple[str, Config]] = (),
    *,
    name: str,
    owner: str,
) -> ProfileAdded:
    """Add rows to a profile, and the models of named configurations to the store: all of them, or none.

    `predictor`: in service; the rows are checked against it. `owner`: name of the API key; empty for the command
    line. Raises `InputError` if the name is malformed, a row cannot be used, no row of the profile would be a mean or
    a median, the profile would have too many rows, or too many models would be registered; `NotReadyError` if the
    store cannot be written.
    """
    check_name(name)
    new = catalogs.admit_models(configs, owner)
    cells = build_profile(name, rows, new.catalog, predictor).rows
    _check_central([*cells, *profiles.own_rows(owner, name)])
    n_new = profiles.add(owner, name, cells, new.models, new.registered)
    if new.models:
        catalogs.refresh()
    return ProfileAdded(name, n_new, len(cells) - n_new, len(profiles.load(owner, name).ids))


def check_name(name: str) -> None:
    """Raise `InputError` if a profile cannot have this name."""
    if not _NAME.fullmatch(name):
        problem = f"must be up to 100 letters, digits, dots, dashes or underscores, got {name[:120]!r}"
        raise InputError("stack", problem)


def without_blanks(row: Cells) -> dict[str, Any]:
    """Return the cells of a row that say something: neither blank nor the default of their column."""
    blank = {name: (None, "", column.default) for name, column in SCHEMA.items()}
    return {name: value for name, value in row.items() if value not in blank.get(name, (None, ""))}


def build_profile(name: str, rows: Sequence[Cells], catalog: Catalog, predictor: RoofcastPredictor) -> Profile:
    """Return the profile of some rows.

    Raises `SchemaError` if there is no row, or one cannot be used; names the row and its field.
    """
    table = table_from_rows([without_blanks(row) for row in rows])
    points, parsed, problems = check_references(table, catalog, predictor, "rows")
    raise_first(problems, "rows")
    return _profile(name, points, parsed)


def load_stored(name: str, stored: StoredProfile, catalog: Catalog, predictor: RoofcastPredictor) -> Profile:
    """Return a stored profile without the rows that cannot be used any more, which its notes list.

    Raises `InputError` if no row can be used; names one by its cells.
    """
    points, table, problems = _check_stored(name, stored, catalog, predictor)
    notes = ["it hides the shared profile of the same name"] if stored.hides_shared else []
    left_out = [(row, problem) for row, problem in zip(stored.rows, problems, strict=True) if problem]
    if left_out:
        number = f"{len(left_out)} of {len(stored.rows)} rows of the profile {name} are left out"
        notes.append(f"{number}, such as {describe_row(left_out[0][0])}: {left_out[0][1]}")
    profile = _profile(name, points, table)
    return replace(profile, is_shared=stored.is_shared, notes=tuple(notes))


def _check_stored(
    name: str, stored: StoredProfile, catalog: Catalog, predictor: RoofcastPredictor
) -> tuple[CalibrationPoints, pd.DataFrame, list[Problem | None]]:
    try:
        return check_references(table_from_rows(stored.rows), catalog, predictor)
    except SchemaError as error:
        row = describe_row(stored.rows[max(error.line - 1, 0)])
        problem = f"no row of the profile {name} can be used, such as {row}: {error.field}: {error.problem}"
        raise InputError("stack", problem) from error


def describe_row(row: Cells) -> str:
    """Return the cells that tell a row from others of its profile.

    Examples
    --------
    >>> describe_row({"model": "m", "accelerator": "t4", "concurrency": 8, "engine": "vllm", "tp": 1, "ttft_s": 0.1})
    'model=m accelerator=t4 concurrency=8 ttft_s=0.1'
    """
    return " ".join(f"{column}={row[column]}" for column in _NAMING if column in row)


def _profile(name: str, points: CalibrationPoints, table: pd.DataFrame) -> Profile:
    rows = [_typed_cells(row) for row in rows_from_table(table)]
    is_central = central_rows(rows)
    central = CalibrationPoints(points.X[is_central], points.y[is_central])
    return Profile(name, rows, points, central)


def _check_central(rows: Iterable[Cells]) -> None:
    if not central_rows([*rows]).any():
        raise SchemaError("statistic", "is neither mean nor p50 in any row; give one of at least one run", "rows")


def _typed_cells(row: Cells) -> dict[str, Any]:
    cells = without_blanks(row)
    for name, value in cells.items():
        if name in INPUT_COLUMNS and INPUT_COLUMNS[name].kind == "bool":
            cells[name] = bool(value)
        elif isinstance(value, float) and value.is_integer():
            cells[name] = int(value)
    return cells


def central_rows(rows: Sequence[Cells]) -> npt.NDArray[np.bool_]:
    """Return whether each row is a mean or a median: shape (n_row,)."""
    return np.array([row.get("statistic", "mean") in CENTRAL for row in rows], dtype=bool)


def check_file_rows(file: Path) -> None:
    """Refuse a CSV file of far more different lines than a profile has rows, before it is parsed.

    Lines may differ and their rows be equal, or have no metric, so only `MAX_LINE_RATIO` times the rows are too many.

    Raises `InputError` if there are more.
    """
    from roofcast.data.store.stack_profiles import MAX_ROW, too_many_rows  # noqa: PLC0415  (an answer needs no store)

    if file.suffix.lower() != ".csv" or not file.is_file():
        return
    with file.open("rb") as lines:
        n_different = len({hash(line) for line in lines}) - 1
    if n_different > MAX_LINE_RATIO * MAX_ROW:
        raise too_many_rows(n_different)


def rows_of_measurements(table: pd.DataFrame) -> tuple[list[dict[str, Any]], int]:
    """Return validated measurements as rows of a profile, and the number of those left out.

    Left out are runs that failed and rows without a metric of references.

    Raises `InputError` if there are more different rows than a profile may have.
    """
    from roofcast.data.store.stack_profiles import MAX_ROW, too_many_rows  # noqa: PLC0415  (an answer needs no store)

    has_metric = table[list(REFERENCE_METRICS)].notna().any(axis=1)
    usable = table[has_metric & (table["status"] == "ok")]
    cells = usable[[name for name in _STORED if name in usable]]
    if len(cells) > MAX_ROW and (n_row := len(cells.drop_duplicates())) > MAX_ROW:
        raise too_many_rows(n_row)
    rows = rows_from_table(cells)
    return [without_blanks(row) for row in rows], len(table) - len(usable)
