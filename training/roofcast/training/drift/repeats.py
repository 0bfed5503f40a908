"""Repeats: runs of a stack that were measured before, with equal or other settings, and what has changed since."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.measurements.schema import ACCEPTANCES, INPUT_COLUMNS
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
"""Columns that two measurements of a run share, besides stack and lengths to two digits."""

LENGTHS: Final = ("n_input_token", "n_output_token")

VERSIONS: Final = ("engine_version", "software")
"""Columns in which repeats may differ: a newer version that is slower is a regression."""

RUN_LENGTHS: Final = ("n_request", "duration_s")

SETTINGS: Final = tuple(
    name for name in INPUT_COLUMNS if name not in {*RUN, *LENGTHS, *VERSIONS, *RUN_LENGTHS, "statistic", "date"}
)
"""Columns in which repeats agree, besides the length of the run: other values are a change of settings."""

OBSERVED: Final = ("length_variation", "prefix_cache_ratio", *ACCEPTANCES)
"""Settings that some load generators count from the run: they agree to one decimal."""

FULL_DATE: Final = r"\d{4}-\d{2}-\d{2}"

PAIR_COLUMNS: Final = (
    "metric", "row", "row_before", "before", "after", "date_before", "date_after", "ratio", "run", "is_repeat",
    "accelerator", "engine_version", "stack",
)  # fmt: skip


def find_repeats(rows: pd.DataFrame, is_new: pd.Series) -> pd.DataFrame:
    """Return one line for each new value of `METRICS` whose run and statistic the stack measured before.

    It is compared with the latest measurement before it that has equal settings, of whatever engine version; only
    where there is none, with the latest of other settings. Of several new measurements with equal settings the latest
    counts. Measurements of one import and day have no order and are not compared.

    `rows`: new and earlier measurements, with `uploader`, `import_id` and `added_at`, and a unique index. `is_new`:
    shape (n_row,).

    Returns
    -------
    Columns `PAIR_COLUMNS`: `row` and `row_before` (index of `rows`), `ratio` (after / before), `run` (a number, for
    equal settings), `is_repeat` (whether the settings are equal)
    """
    stack = owned_stacks(rows)
    keys = [rows[name] for name in RUN] + [_words_of(rows[name], "{:.1e}") for name in LENGTHS] + [stack]
    configuration = rows.groupby(keys, dropna=False, sort=False).ngroup()
    is_new = is_new.astype(bool)
    is_measured_now = configuration.isin(configuration[is_new])
    if not is_measured_now.all():
        return find_repeats(rows[is_measured_now], is_new[is_measured_now])
    settings = rows[list(SETTINGS)].round(dict.fromkeys(OBSERVED, 1)).assign(configuration=configuration)
    setting = settings.groupby([*settings], dropna=False, sort=False).ngroup()
    run = rows.groupby([setting, _run_length(rows, setting)], sort=False).ngroup()
    date = rows["date"].where(rows["date"].str.fullmatch(FULL_DATE), rows["added_at"].dt.strftime("%Y-%m-%d"))
    table = pd.DataFrame(
        {
            "row": rows.index, "configuration": configuration, "run": run, "is_new": is_new,
            "statistic": _codes(rows["statistic"]), "date": _codes(date), "import_id": _codes(rows["import_id"]),
        }
    )  # fmt: skip
    order = pd.DataFrame({"date": date, "added_at": rows["added_at"]}).sort_values(
        ["date", "added_at"], kind="stable"
    )
    pairs = _pairs(table, outcomes(rows), order.index)
    texts = pd.DataFrame(
        {"date": date, "accelerator": rows["accelerator"], "engine_version": name_version(rows), "stack": stack}
    )
    after = texts.loc[pairs["row"]].rename(columns={"date": "date_after"}).set_axis(pairs.index)
    before = texts.loc[pairs["row_before"], ["date"]].rename(columns={"date": "date_before"}).set_axis(pairs.index)
    return pd.concat([pairs, before, after], axis=1)[[*PAIR_COLUMNS]]


def _codes(values: pd.Series) -> npt.NDArray[np.intp]:
    return pd.factorize(values, sort=True)[0]


def _words_of(numbers: pd.Series, form: str) -> pd.Series:
    codes, distinct = pd.factorize(numbers, use_na_sentinel=False)
    words = np.array([form.format(number) for number in distinct], dtype=object)
    return pd.Series(words[codes], index=numbers.index, dtype=object)


def _run_length(rows: pd.DataFrame, setting: pd.Series) -> pd.Series:
    duration = _words_of(rows["duration_s"], "{:.1e} s")
    n_distinct = rows.groupby([setting, duration])["n_request"].transform("nunique")
    is_timed = rows["duration_s"].notna() & (n_distinct > 1)
    return _words_of(rows["n_request"], "{:g} requests").mask(is_timed, duration)


def _pairs(table: pd.DataFrame, measured: pd.DataFrame, order: pd.Index) -> pd.DataFrame:
    tables = [table.assign(metric=i, value=measured[name]).loc[order] for i, name in enumerate(METRICS)]
    values = pd.concat(tables, ignore_index=True)
    values = values[values["value"] >= LEAST_VALUE]
    repeats = _with_earlier(values, "run").assign(is_repeat=True)
    others = _with_earlier(values.drop(repeats.index), "configuration").assign(is_repeat=False)
    latest = [pairs.drop_duplicates(["metric", "run", "statistic"], keep="last") for pairs in (repeats, others)]
    pairs = pd.concat(latest).sort_values("metric", kind="stable", ignore_index=True)
    pairs = pairs.rename(columns={"value": "after", "value_before": "before"})
    names = np.array(METRICS, dtype=object)[pairs["metric"].to_numpy()]
    columns = ["metric", "row", "row_before", "before", "after", "run", "is_repeat"]
    return pairs.assign(metric=names)[columns].assign(ratio=pairs["after"] / pairs["before"])


def _with_earlier(values: pd.DataFrame, key: str) -> pd.DataFrame:
    keys = ["metric", key, "statistic"]
    once = values.drop_duplicates([*keys, "date", "import_id"], keep="last")
    pairs = once.join(once.groupby(keys, sort=False)[["row", "value"]].shift().add_suffix("_before"))
    return pairs[pairs["is_new"] & pairs["value_before"].notna()]


def is_beyond_noise(pairs: pd.DataFrame) -> pd.Series:
    """Return whether each pair differs by more than `REPEAT_LIMITS`."""
    limits = pairs["metric"].map(REPEAT_LIMITS).astype(float)
    is_beyond: pd.Series = np.log(pairs["ratio"]).abs() > np.log(limits)
    return is_beyond


def differing_settings(before: pd.Series, after: pd.Series, *, is_repeat: bool) -> list[str]:
    """Return the recorded versions and settings in which two measurements differ.

    Examples
    --------
    >>> blank = dict.fromkeys((*VERSIONS, *SETTINGS), "")
    >>> differing_settings(pd.Series(blank), pd.Series(blank | {"engine_version": "0.26.0"}), is_repeat=True)
    ['engine_version unknown -> 0.26.0']
    """
    return [
        f"{name} {_text(before[name])} -> {_text(after[name])}"
        for name in (*VERSIONS, *SETTINGS, *(() if is_repeat else ("n_request",)))
        if _text(before[name]) != _text(after[name])
    ]


def _text(cell: object) -> str:
    return f"{cell:g}" if isinstance(cell, float) and not np.isnan(cell) else _words(cell)


def _words(cell: object) -> str:
    return "unknown" if pd.isna(cell) or cell == "" else str(cell)  # type: ignore[call-overload]
