"""Parser of reference measurements: input columns with measured metrics."""

from collections.abc import Sequence
from typing import Final

import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import SchemaError, join_errors
from roofcast.data.measurements.cells import CellParser, Finding
from roofcast.data.measurements.column_names import LONG_NAMES, column_cure
from roofcast.data.measurements.schema import INPUT_COLUMNS, OUTCOME_COLUMNS, REFERENCE_METRICS
from roofcast.features.descriptors.assumptions import ASSUMED, ASSUMED_LOAD
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.serving.predict.question_rows import Problem, add_findings
from roofcast.serving.predict.row_checks import capacity_problems, check_table, table_columns
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor

MAX_RATIO: Final = 300.0
"""Largest ratio of measurement and prediction, either way; beyond it a wrong unit or a typing error is assumed."""

METRIC_PARSER: Final = CellParser({name: OUTCOME_COLUMNS[name] for name in REFERENCE_METRICS}, {}, ())


def read_references(
    rows: pd.DataFrame,
    catalog: Catalog,
    predictor: RoofcastPredictor,
    source: str = "references",
    lines: Sequence[int] = (),
) -> CalibrationPoints:
    """Return the reference measurements of a table, with the metrics that follow from those measured.

    Added are TTFT per input token and, for means, ITL and E2E latency.

    Raises `SchemaError` if there is no row, a column is unknown, or a row cannot be used; names the first such row
    and its field.

    - `rows`: Input columns and `REFERENCE_METRICS`, blank where unknown; the load is required.
    - `predictor`: The measurements are compared with its predictions.
    - `source`, `lines`: File name and line of each row, for messages; rows are counted from 1 if there are no lines.
    """
    points, _, problems = check_references(rows, catalog, predictor, source, lines)
    raise_first(problems, source, lines)
    return points


def check_references(
    rows: pd.DataFrame,
    catalog: Catalog,
    predictor: RoofcastPredictor,
    source: str = "references",
    lines: Sequence[int] = (),
) -> tuple[CalibrationPoints, pd.DataFrame, list[Problem | None]]:
    """Return what `read_references` does of the rows that can be used, and the first problem of each row.

    Between them is the table of these rows, with typed cells and catalogue ids.

    Raises `SchemaError` if a column is unknown, or no row can be used; names the first and its field.
    """
    _check_columns(rows, source)
    table, problems = check_table(rows.drop(columns=list(REFERENCE_METRICS), errors="ignore"), catalog)
    measured = _parse_metrics(rows.reset_index(drop=True), problems)
    is_assumed = table[ASSUMED_LOAD].to_numpy(dtype=bool)
    message = "give it, or request_rate, as it was measured"
    add_findings(problems, [Finding(is_assumed, "concurrency", message)])
    sound = [i for i, problem in enumerate(problems) if problem is None]
    if not sound:
        raise_first(problems, source, lines)
    table, measured = (part.iloc[sound].reset_index(drop=True) for part in (table, measured))
    X = describe(table, catalog.models, catalog.accelerators)
    further = _compare(X, measured, predictor)
    for i, problem in zip(sound, further, strict=True):
        problems[i] = problem
    usable = [i for i, problem in enumerate(further) if problem is None]
    if not usable:
        raise_first(problems, source, lines)
    X, table, measured = (part.iloc[usable].reset_index(drop=True) for part in (X, table, measured))
    parsed = table.drop(columns=[ASSUMED_LOAD, *ASSUMED.values()]).join(measured)
    return CalibrationPoints(X, _with_derived(measured, table)), parsed, problems


def _compare(X: pd.DataFrame, measured: pd.DataFrame, predictor: RoofcastPredictor) -> list[Problem | None]:
    prediction = predictor.predict_ratio(X, measured.columns)
    problems = capacity_problems(X, prediction.estimate)
    for metric, value in prediction.value.items():
        unit = "tokens per second" if metric.endswith("_token_per_s") else "seconds"
        ratio = measured[metric].to_numpy() / value
        for bound, mask in (
            (f"over {MAX_RATIO:g} times", ratio > MAX_RATIO),
            (f"under 1/{MAX_RATIO:g} of", ratio < 1 / MAX_RATIO),
        ):
            add_findings(problems, [Finding(mask, metric, f"is {bound} what is predicted; give {unit}")])
    return problems


def _check_columns(rows: pd.DataFrame, source: str) -> None:
    known = (*INPUT_COLUMNS, *LONG_NAMES, *REFERENCE_METRICS)
    if rows.empty:
        raise SchemaError("", "there is no row", source)
    for name in rows.columns[rows.columns.duplicated()]:
        raise SchemaError(str(name), "is given twice as a column; keep one", source)
    unknown = [str(name) for name in rows.columns if name not in known]
    if unknown:
        problems = {name: f"is not a column of references; {column_cure(name, known)}" for name in unknown}
        raise join_errors([SchemaError(name, problem, source) for name, problem in problems.items()])


def _parse_metrics(rows: pd.DataFrame, problems: list[Problem | None]) -> pd.DataFrame:
    columns = table_columns(rows[rows.columns.intersection([*REFERENCE_METRICS])])
    parsed, findings = METRIC_PARSER.parse(columns) if columns else ({}, [])
    measured = pd.DataFrame(parsed, index=rows.index)
    is_blank = measured.isna().all(axis=1).to_numpy()
    add_findings(problems, [*findings, Finding(is_blank, "ttft_s", f"give one of {', '.join(REFERENCE_METRICS)}")])
    return measured


def raise_first(problems: Sequence[Problem | None], source: str, lines: Sequence[int] = ()) -> None:
    """Raise the first problem of rows as an error, if there is one."""
    for line, problem in zip([*lines] or range(1, len(problems) + 1), problems, strict=True):
        if problem is not None:
            raise problem.error(source, line)


def _with_derived(measured: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    y = measured.reindex(columns=list(REFERENCE_METRICS))
    is_mean = table["statistic"] == "mean"
    e2e_s = y["ttft_s"] + y["tpot_s"] * (table["n_output_token"] - 1).clip(lower=0)
    y["nttft_s_per_token"] = y["ttft_s"] / table["n_input_token"]
    y["itl_s"] = y["itl_s"].fillna(y["tpot_s"].where(is_mean))
    y["e2e_s"] = y["e2e_s"].fillna(e2e_s.where(is_mean))
    return y
