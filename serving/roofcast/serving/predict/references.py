"""Reference measurements as they are given: rows of questions with what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import SchemaError
from roofcast.data.measurements.metrics import e2e_from_parts
from roofcast.data.measurements.schema import ASKED_COLUMNS
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.serving.predict.answers import checked, unanswerable
from roofcast.serving.predict.json_rows import table as table_of
from roofcast.serving.predict.row_parser import ASSUMED_LOAD, Problem
from roofcast.training.learner.predictor import References, RoofcastPredictor

REFERENCE_METRICS: Final = ("ttft_s", "tpot_s", "output_throughput_token_per_s", "itl_s", "e2e_s")
"""Columns of what was measured; a row gives one at least."""

FAR: Final = 300.0
"""How many times more or less than the prediction is taken for a wrong unit, such as milliseconds, or a slip."""

_GREATEST: Final = 1e9


def read_references(
    rows: pd.DataFrame,
    catalog: Catalog,
    predictor: RoofcastPredictor,
    source: str = "references",
    lines: Sequence[int] = (),
) -> References:
    """Return reference measurements, all of which are sound.

    What follows from what was measured is filled in: TTFT per input token, and of means ITL and the end-to-end
    latency.

    Parameters
    ----------
    rows
        Columns of questions and of `REFERENCE_METRICS`, blank where unknown; the load must be given.
    catalog
        What is known by name.
    predictor
        That they are for.
    source, lines
        File and the line of each row, for messages; rows are counted from 1 if there are none.

    Raises
    ------
    SchemaError
        If there is no row, a column is unknown, or a row is no measurement that can be learnt from; names the first
        such row and its field.
    """
    places = [*lines] or [*range(1, len(rows) + 1)]
    _check_columns(rows, source)
    table, problems = checked(rows.drop(columns=list(REFERENCE_METRICS), errors="ignore"), catalog)
    _raise_first(problems, source, places)
    measured = _measured(rows.reset_index(drop=True), source, places)
    _raise_at(table[ASSUMED_LOAD], "concurrency", "give it, or request_rate, as it was measured", source, places)
    X = describe(table, catalog.models, catalog.accelerators)
    value, _, whole = predictor.predict_parts(X, measured.columns)
    _raise_first(unanswerable(whole), source, places)
    for metric in value.columns:
        unit = "tokens per second" if metric.endswith("_token_per_s") else "seconds"
        ratio = measured[metric] / value[metric]
        _raise_at(ratio > FAR, metric, f"is over {FAR:g} times what is predicted; give {unit}", source, places)
        _raise_at(ratio < 1 / FAR, metric, f"is under 1/{FAR:g} of what is predicted; give {unit}", source, places)
    return References(X, _with_implied(measured, table))


def references_of(
    rows: Sequence[Mapping[str, Any]], catalog: Catalog, predictor: RoofcastPredictor
) -> References | None:
    """Return the references that came with a request, None if there are none; `read_references` says what they are.

    Raises
    ------
    SchemaError
        If one is no measurement that can be learnt from.
    """
    return read_references(table_of(rows), catalog, predictor) if rows else None


def _check_columns(rows: pd.DataFrame, source: str) -> None:
    known = (*ASKED_COLUMNS, *REFERENCE_METRICS)
    if rows.empty:
        raise SchemaError("", "there is no row", source)
    for name in rows.columns[rows.columns.duplicated()]:
        raise SchemaError(str(name), "is given twice as a column", source)
    for name in rows.columns.difference([*known]):
        raise SchemaError(str(name), f"is not a column of references; they are {', '.join(known)}", source)


def _measured(rows: pd.DataFrame, source: str, lines: Sequence[int]) -> pd.DataFrame:
    measured = pd.DataFrame(index=rows.index)
    for name in rows.columns.intersection([*REFERENCE_METRICS]):
        text = rows[name].astype(object).where(rows[name].notna(), "").astype(str).str.strip()
        values = pd.to_numeric(text.where(text != "", None), errors="coerce").astype(float)
        wrong = (text != "") & ~((values > 0) & (values <= _GREATEST))
        _raise_at(wrong, name, "must be a number greater than 0", source, lines)
        measured[name] = values
    is_blank = measured.isna().all(axis=1)
    _raise_at(is_blank, "ttft_s", f"give one of {', '.join(REFERENCE_METRICS)}", source, lines)
    return measured


def _raise_first(problems: Sequence[Problem | None], source: str, lines: Sequence[int]) -> None:
    for line, problem in zip(lines, problems, strict=True):
        if problem is not None:
            named = problem[1] if problem[0] != "does_not_fit" else f"n_accelerator: {problem[1]}"
            field, _, text = named.partition(": ")
            raise SchemaError(field, text, source, line)


def _raise_at(mask: pd.Series, field: str, problem: str, source: str, lines: Sequence[int]) -> None:
    for i in np.flatnonzero(mask.to_numpy(dtype=bool)):
        raise SchemaError(field, problem, source, lines[int(i)])


def _with_implied(measured: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    y = measured.reindex(columns=list(REFERENCE_METRICS))
    is_mean = table["statistic"] == "mean"
    whole = [e2e_from_parts(*row) for row in zip(y["ttft_s"], y["tpot_s"], table["n_output_token"], strict=True)]
    y["nttft_s_per_token"] = y["ttft_s"] / table["n_input_token"]
    y["itl_s"] = y["itl_s"].fillna(y["tpot_s"].where(is_mean))
    y["e2e_s"] = y["e2e_s"].fillna(pd.Series(whole, index=y.index).where(is_mean))
    return y
