"""Checks between the columns of parsed rows: load, split, speculation, prefix caching."""

from __future__ import annotations

from typing import Final

import numpy as np

from roofcast.data.measurements.schema import NO_SPECULATION, WHOLE_COLUMNS
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.serving.row_problems import Problem, add_problems

Table = dict[str, ColumnArray]
Problems = list[Problem | None]

_SPLIT_COLUMNS: Final = (
    "n_accelerator", "n_prefill_accelerator", "n_decode_accelerator", "tp", "pp", "dp", "cp",
)  # fmt: skip


def check_load(table: Table, problems: Problems) -> ColumnArray:
    """Check that load, concurrency and request rate agree; return whether one request in flight is assumed.

    An offline load needs neither.
    """
    has_concurrency, has_rate = (~np.isnan(table[name]) for name in ("concurrency", "request_rate"))
    message = "give either concurrency or request_rate"
    add_problems(problems, has_concurrency & has_rate, "invalid", "concurrency", message, uses=("request_rate",))
    is_assumed = ~(has_concurrency | has_rate)
    if "load" in table:
        load = table["load"]
        is_open, is_offline = load == "open_loop", load == "offline"
        message = "must be given for the load open_loop"
        add_problems(problems, is_open & ~has_rate, "invalid", "request_rate", message, uses=("load",))
        is_other = (load != "") & ~is_open
        message = "belongs to the load open_loop; leave it blank, or give that load"
        add_problems(problems, is_other & has_rate, "invalid", "request_rate", message, uses=("load",))
        is_assumed &= ~(is_open | is_offline)
    return is_assumed


def check_split(table: Table, problems: Problems) -> None:
    """Check that counts are whole and that the split is one of the accelerators; fill in the two parts of them.

    With disaggregated prefill the split is that of one of several decode workers.
    """
    for name in WHOLE_COLUMNS:
        if name in table:
            cells = table[name]
            is_fraction = np.nan_to_num(cells % 1) != 0
            text = lambda i, cells=cells: f"must be a whole number, got {cells[i]:g}"  # noqa: E731
            add_problems(problems, is_fraction, "invalid", name, text)
    n_accelerator, is_apart = table["n_accelerator"], None
    if "n_prefill_accelerator" in table or "n_decode_accelerator" in table:
        is_apart = _fill_parts(table, problems)
        n_accelerator = np.where(is_apart, table["n_decode_accelerator"], table["n_accelerator"])
    tp, pp, dp = (table[name] for name in ("tp", "pp", "dp"))
    ranks = np.where(np.isnan(pp), 1, pp) * np.where(np.isnan(dp), 1, dp)
    names = "pp x dp"
    if "cp" in table:
        ranks = ranks * np.where(np.isnan(table["cp"]), 1, table["cp"])
        names = "pp x dp x cp"
    split = np.where(np.isnan(tp), n_accelerator / ranks, tp)
    message = f"{names} must not exceed n_accelerator"
    add_problems(problems, split < 1, "invalid", "tp", message, uses=_SPLIT_COLUMNS)
    excess = split * ranks - n_accelerator
    if is_apart is not None:
        excess = np.where(is_apart, n_accelerator % (split * ranks), excess)

    def excess_message(i: int) -> str:
        verb = "equal" if is_apart is None or not is_apart[i] else "divide"
        return f"tp x {names} must {verb} n_accelerator, got {split[i]:g} x {ranks[i]:g} and {n_accelerator[i]:g}"

    is_wrong = (np.abs(excess) > 1e-9) | (split % 1 != 0)
    add_problems(problems, is_wrong, "invalid", "tp", excess_message, uses=_SPLIT_COLUMNS)


def _fill_parts(table: Table, problems: Problems) -> ColumnArray:
    """Fill in whichever count of accelerators follows; return whether some prefill and others decode."""
    blank = np.full(len(problems), np.nan)
    n_total, is_given = table["n_accelerator"], table["n_accelerator"] > 1
    n_prefill, n_decode = (table.get(f"n_{part}_accelerator", blank) for part in ("prefill", "decode"))
    n_total = np.where(is_given | np.isnan(n_prefill + n_decode), n_total, n_prefill + n_decode)
    n_prefill = np.where(np.isnan(n_prefill), n_total - n_decode, n_prefill)
    n_decode = np.where(np.isnan(n_decode), n_total - n_prefill, n_decode)
    is_apart = ~np.isnan(n_prefill)
    is_wrong = is_apart & ((n_prefill + n_decode != n_total) | (n_decode < 1) | (n_prefill < 0))
    message = "must add up to n_accelerator with n_decode_accelerator, at least one each"
    add_problems(problems, is_wrong, "invalid", "n_prefill_accelerator", message, uses=_SPLIT_COLUMNS)
    is_apart &= ~is_wrong & (n_prefill > 0)
    table["n_accelerator"] = n_total
    table["n_prefill_accelerator"] = np.where(is_apart, n_prefill, np.nan)
    table["n_decode_accelerator"] = np.where(is_apart, n_decode, np.nan)
    return is_apart


def check_features(table: Table, problems: Problems) -> None:
    """Check that the settings of speculation and of prefix caching belong to a feature that is on."""
    for name in ("n_speculative_token", "acceptance_ratio"):
        if name in table:
            speculation = table.get("speculation", np.array([""], dtype=object))
            is_plain = (speculation == "") | (speculation == NO_SPECULATION)
            message = "needs speculation; give its kind, such as mtp or eagle, too"
            add_problems(problems, is_plain & (table[name] > 0), "invalid", name, message, uses=("speculation",))
    if "prefix_caching" in table and "prefix_cache_ratio" in table:
        is_wrong = (table["prefix_caching"] == "off") & (table["prefix_cache_ratio"] > 0)
        message = "must be 0 or blank with prefix_caching off"
        add_problems(problems, is_wrong, "invalid", "prefix_cache_ratio", message, uses=("prefix_caching",))
