"""Verdicts by group, from scores and pairs that are made by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.training.drift.drift_report import Counts, DriftReport, build_report, distinct_groups
from tests.training.drift.tables import imported, imported_rows, pairs_of


def scores(*errors: float, **columns: Any) -> pd.DataFrame:
    """Return scores of one configuration a row, with errors in half-widths of an interval of a factor of e."""
    n = len(errors)
    groups = {"accelerator": "a", "engine_version": "vllm 1.0", "lineage": "l", "stack": "s", "metric": "tpot_s"}
    error = np.array(errors)
    numbers = {"row": range(n), "configuration": range(n), "measured": np.exp(error), "predicted": 1.0, "width": 1.0}
    return pd.DataFrame(groups | numbers | {"log_error": error} | columns)


def report(
    scored: pd.DataFrame, pairs: pd.DataFrame | None = None, rows: pd.DataFrame | None = None, **options: Any
) -> DriftReport:
    rows = imported_rows() if rows is None else rows
    table = pairs_of(rows, is_new=False) if pairs is None else pairs
    counts = Counts(n_row=len(scored))
    return build_report(scored, table, rows, counts, predictor_version="1", level=0.9, warnings=[], **options)


def test_configurations_outside_their_intervals_are_drift() -> None:
    result = report(scores(1.1, 1.2, 1.3, 0.1, 0.0))
    assert result.is_drift
    (reason,) = result.reasons
    assert reason.startswith(
        "tpot_s of all rows: 3 of 5 configurations are outside their 90% intervals, measured is 3"
    )
    (every,) = distinct_groups(result.errors)
    assert (every.n_row, every.n_outside, every.coverage) == (5, 3, 0.4)
    assert every.bias == pytest.approx(np.exp(1.1))


def test_one_configuration_outside_is_none_however_many_rows_it_has() -> None:
    assert not report(scores(*[5.0] * 20, configuration=0)).is_drift
    assert not report(scores(1.5, 0.1, 0.1)).is_drift


def test_only_the_group_that_drifts_is_named() -> None:
    result = report(scores(2, 2, 2, 2, *[0] * 8, accelerator=["new"] * 4 + ["old"] * 8))
    assert [reason.partition(":")[0] for reason in result.reasons] == ["tpot_s of accelerator new"]
    assert {one.name: one.is_drift for one in result.errors if one.kind == "accelerator"} == {
        "new": True,
        "old": False,
    }


def test_many_groups_are_corrected_for() -> None:
    """Two of two configurations outside have p = .01, which one of ten equal groups reaches by chance."""
    names = np.repeat([f"v{i}" for i in range(10)], 2)
    result = report(scores(2, 2, *[0] * 18, engine_version=names))
    assert [one.p_value for one in result.errors if one.name == "v0"] == [pytest.approx(0.11)]
    assert not result.is_drift


def test_a_report_without_rows_has_no_verdict() -> None:
    result = report(scores())
    assert (result.is_drift, result.errors, result.n_compared) == (False, [], 0)


def test_a_large_change_of_one_repeat_is_drift_and_a_small_one_is_not() -> None:
    rows = imported_rows(after=0.0525)
    pairs = pairs_of(rows)
    result = report(scores(), pairs)
    (change,) = result.changes
    assert (change.before, change.after, change.date_before) == (0.0175, 0.0525, "2026-11-15")
    assert change.settings == ["engine_version 0.11.0 -> 0.11.1"]
    (reason,) = result.reasons
    assert reason.endswith(
        "1 of 1 repeated runs changed by more than repeats do, the median is 3 times the earlier value"
    )
    assert not report(scores(), pairs, max_change=4).is_drift
    small = report(scores(), pairs_of(imported_rows(after=0.0178)))
    assert (small.n_repeat, small.n_changed, small.is_drift) == (1, 0, False)


def test_a_change_of_settings_is_listed_and_is_no_drift() -> None:
    before = {"tpot_s": 0.0175, "date": "2026-11-15", "max_num_seqs": 512}
    rows = imported(before, before | {"tpot_s": 0.0525, "max_num_seqs": 64, "date": "2026-11-23", "of": 1})
    result = report(scores(), pairs_of(rows), rows)
    assert (result.is_drift, result.n_repeat, result.changes, result.n_other_settings) == (False, 0, [], 1)
    (change,) = result.setting_changes
    assert change.ratio == pytest.approx(3.0)
    assert change.settings == ["max_num_seqs 512 -> 64"]
