"""The largest held-out errors, each beside its neighbours and the breakdown of its estimate."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd

from research.shipped_rows import ShippedRows
from roofcast.features.analysis.breakdown import METRIC_PHASES, OperatorTime, break_down
from roofcast.features.engine.estimate import estimate
from roofcast.features.queries import FloatArray, descriptor_arrays

SERIES: Final = ("campaign", "model", "accelerator", "n_accelerator", "engine", "load")
"""Columns that neighbours share; their lengths, concurrency and settings may differ."""

KIN: Final = ("campaign", "accelerator", "engine")
"""Columns that rows of the same stack with any LLM share."""

MIN_NEIGHBOUR: Final = 3
ALIKE: Final = 2.0
"""Factor within which the typical neighbour is predicted, so that a row stands alone."""

QUEUE, DOES_NOT_FIT, ALONE, SERIES_OFF, STACK_OFF, UNKNOWN = READINGS = (
    "the estimate lets it wait for a slot: a small error of the capacity is a large one of the wait",
    "the estimate finds that the weights do not fit: its count of them, or the stated precision, is off",
    "alone: its neighbours are predicted within a factor of two",
    "its whole series is off the same way: a setting that no column holds",
    "other LLMs on this stack are off the same way: an engine or a harness unlike all others",
    "too few neighbours, or they disagree among themselves",
)


def worst_errors(rows: ShippedRows, errors: pd.DataFrame, n: Mapping[str, int]) -> pd.DataFrame:
    """Return the largest errors of means and medians, at most one of each metric and `KIN`.

    `errors`: shape (n_row, n_metric): ln(measured / predicted). `n`: number of errors by metric.

    Returns
    -------
    Index: that of the measurement; `metric`, `measured`, `predicted`, `estimate`, `factor` (measured over predicted),
    `largest_part` of the estimate with its share, `n_neighbour` rows of the series and their typical `neighbours`
    factor, that of other LLMs on the `stack`, and `reading`, one of `READINGS`
    """
    is_central = rows.X["workload.quantile"] == 0.5
    tables = []
    for metric, count in n.items():
        error = errors[metric].where(is_central).dropna()
        order = error.abs().sort_values(ascending=False).index
        ordered = rows.measurements.loc[order]
        first = ordered.drop_duplicates(list(KIN)).index[:count]
        lines = [_compare(rows, error, int(row)) for row in first]
        measured, factor = rows.y[metric].loc[first], np.exp(error.loc[first])
        table = pd.DataFrame(lines, index=first).assign(
            metric=metric,
            measured=measured,
            predicted=measured / factor,
            estimate=rows.estimates[metric].loc[first],
            factor=factor,
            largest_part=largest_parts(rows, first, metric),
        )
        table["reading"] = [_read(rows, int(row), metric, line) for row, line in zip(first, lines, strict=True)]
        tables.append(table)
    columns = ["metric", "measured", "predicted", "estimate", "factor", "largest_part"]
    return pd.concat(tables)[[*columns, "n_neighbour", "neighbours", "stack", "reading"]]


def largest_parts(rows: ShippedRows, index: pd.Index, metric: str) -> list[str]:
    """Return the operator or wait that takes most of the estimate of each row, with its share and bound."""
    d, coefficients = descriptor_arrays(rows.X.loc[index]), rows.bundle.predictor.coefficients_
    phases = METRIC_PHASES["ttft_s" if metric == "ttft_s" else "tpot_s"]
    parts = [part for part in break_down(d, coefficients, estimate(d, coefficients)) if part.phase in phases]
    seconds = np.array([part.seconds for part in parts])
    share = seconds / seconds.sum(axis=0)
    return [_name_part(parts, share[:, i], i) for i in range(len(index))]


def _name_part(parts: Sequence[OperatorTime], share: FloatArray, i: int) -> str:
    part = parts[int(share.argmax())]
    return f"{part.operator} {share.max():.0%}, {part.bound[i]}"


def _compare(rows: ShippedRows, error: pd.Series, row: int) -> dict[str, float]:
    table = rows.measurements.loc[error.index]
    own = rows.measurements.iloc[row]
    is_neighbour = (table[list(SERIES)] == own[list(SERIES)]).all(axis=1) & (table.index != row)
    is_kin = (table[list(KIN)] == own[list(KIN)]).all(axis=1) & (table["model"] != own["model"])
    return {
        "error": float(error.to_dict()[row]),
        "n_neighbour": int(is_neighbour.sum()),
        "neighbours": float(np.exp(error[is_neighbour].median())),
        "n_kin": int(is_kin.sum()),
        "stack": float(np.exp(error[is_kin].median())),
    }


def _read(rows: ShippedRows, row: int, metric: str, line: Mapping[str, float]) -> str:
    queue, weights = (
        rows.features[name].to_numpy(dtype=float)[row] for name in ("roofline.queue_ratio", "memory.weight_ratio")
    )
    if metric == "ttft_s" and queue > 0.5:
        return QUEUE
    if weights > 1:
        return DOES_NOT_FIT
    if line["n_neighbour"] >= MIN_NEIGHBOUR and abs(np.log(line["neighbours"])) < np.log(ALIKE):
        return ALONE
    if line["n_neighbour"] and np.log(line["neighbours"]) / line["error"] > 0.5:
        return SERIES_OFF
    if line["n_kin"] >= MIN_NEIGHBOUR and np.log(line["stack"]) / line["error"] > 0.5:
        return STACK_OFF
    return UNKNOWN
