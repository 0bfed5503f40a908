"""Repeats: a configuration of a stack that was measured before, and what has changed since."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.measurements.schema import INPUT_COLUMNS
from roofcast.training.dataset.targets import outcomes
from roofcast.training.drift.prediction_scores import LEAST_VALUE, METRICS, name_version, owned_stacks

REPEAT_LIMITS: Final = {"ttft_s": 1.228, "tpot_s": 1.102, "itl_s": 1.106, "output_throughput_token_per_s": 1.099}
"""Ratio of two measurements that one in ten repeats exceeds: quantile .9 of ``max(a, b) / min(a, b)`` of the 391,
359, 215 and 659 consecutive repeats on different days in the shipped campaigns, with equal stack, software and
settings."""

LIMIT_LEVEL: Final = 0.9

RUN: Final = (
    "model", "accelerator", "n_accelerator", "engine", "weight_precision", "tp", "pp", "dp", "ep", "n_node", "load",
    "concurrency", "request_rate",
)  # fmt: skip
"""Columns that repeats of a run share, besides stack and lengths to two digits."""

LENGTHS: Final = ("n_input_token", "n_output_token")

SETTINGS: Final = (
    "software",
    *(c for c in INPUT_COLUMNS if c not in {*RUN, *LENGTHS, "statistic", "date", "n_request", "duration_s"}),
)
"""Columns in which repeats may differ, and that may explain a change."""

FULL_DATE: Final = r"\d{4}-\d{2}-\d{2}"


def find_repeats(rows: pd.DataFrame, is_new: pd.Series) -> pd.DataFrame:
    """Return one line for each new value of `METRICS` whose configuration and statistic the stack measured before.

    Of several new measurements the latest counts, and the latest before it. Measurements of one import and day
    have no order and are no repeats of each other.

    Parameters
    ----------
    rows
        New and earlier measurements, with `uploader`, `import_id` and `added_at`, and a unique index.
    is_new : shape (n_row,)

    Returns
    -------
    Columns `metric`, `row` and `row_before` (index of `rows`), `before`, `after`, `date_before`, `date_after`,
    `ratio` (after / before), `run` (a number), `accelerator`, `engine_version` and `stack`
    """
    stack, keys = owned_stacks(rows), [rows[name] for name in RUN]
    keys += [rows[name].map("{:.1e}".format) for name in LENGTHS] + [stack]
    run = rows.groupby(keys, dropna=False, sort=False).ngroup()
    date = rows["date"].where(rows["date"].str.fullmatch(FULL_DATE), rows["added_at"].dt.strftime("%Y-%m-%d"))
    table = pd.DataFrame(
        {
            "row": rows.index, "run": run, "statistic": rows["statistic"], "date": date, "added_at": rows["added_at"],
            "import_id": rows["import_id"], "is_new": is_new, "accelerator": rows["accelerator"],
            "engine_version": name_version(rows), "stack": stack,
        }
    ).sort_values(["date", "added_at"], kind="stable")  # fmt: skip
    measured = outcomes(rows)
    parts = [_pairs(table.assign(value=measured[metric], metric=metric)) for metric in METRICS]
    return pd.concat(parts, ignore_index=True)


def _pairs(table: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of one metric, from values in the order of time."""
    key = ["run", "statistic"]
    once = table[table["value"] >= LEAST_VALUE].drop_duplicates([*key, "date", "import_id"], keep="last")
    before = once.groupby(key, sort=False)[["row", "value", "date"]].shift().add_suffix("_before")
    pairs = once.join(before)
    pairs = pairs[pairs["is_new"].astype(bool) & pairs["value_before"].notna()].drop_duplicates(key, keep="last")
    names = {"value": "after", "value_before": "before", "date": "date_after"}
    pairs = pairs.rename(columns=names).assign(ratio=pairs["value"] / pairs["value_before"])
    columns = ("metric", "row", "row_before", "before", "after", "date_before", "date_after", "ratio", "run")
    return pairs[[*columns, "accelerator", "engine_version", "stack"]]


def is_beyond_noise(pairs: pd.DataFrame) -> pd.Series:
    """Return whether each pair differs by more than `REPEAT_LIMITS`."""
    limits = pairs["metric"].map(REPEAT_LIMITS).astype(float)
    is_beyond: pd.Series = np.log(pairs["ratio"]).abs() > np.log(limits)
    return is_beyond


def differing_settings(before: pd.Series, after: pd.Series) -> list[str]:
    """Return the recorded settings in which two measurements differ.

    Examples
    --------
    >>> blank = dict.fromkeys(SETTINGS, "")
    >>> differing_settings(pd.Series(blank), pd.Series(blank | {"engine_version": "0.26.0"}))
    ['engine_version unknown -> 0.26.0']
    """
    return [
        f"{name} {_text(before[name])} -> {_text(after[name])}"
        for name in SETTINGS
        if _text(before[name]) != _text(after[name])
    ]


def _text(cell: object) -> str:
    return f"{cell:g}" if isinstance(cell, float) and not np.isnan(cell) else _words(cell)


def _words(cell: object) -> str:
    return "unknown" if pd.isna(cell) or cell == "" else str(cell)  # type: ignore[call-overload]
