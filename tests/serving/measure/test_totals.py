"""Totals of a plan: requests, tokens, and a time that each load gives."""

import pytest

from roofcast.serving.measure.plan import PlannedRun
from roofcast.serving.measure.plan_runner import START_S, plan_totals

RUNS = [PlannedRun(100, 20, concurrency=4, n_request=22), PlannedRun(100, 20, request_rate=0.5, n_request=30)]


def test_each_load_takes_its_time() -> None:
    totals = plan_totals(RUNS, 300.0, {run.name: 2.0 for run in RUNS})
    assert (totals.n_run, totals.n_request, totals.n_token) == (2, 52, 52 * 120)
    assert totals.expected_s == pytest.approx((6 * 2.0) + (60.0 + 2.0) + 2 * START_S)
    assert totals.most_s == 2 * (300.0 + START_S)


def test_a_run_ends_at_the_most() -> None:
    assert plan_totals(RUNS[:1], 5.0, {RUNS[0].name: 2.0}).expected_s == 5.0 + START_S


def test_without_a_prediction_the_time_is_bounded_alone() -> None:
    totals = plan_totals(RUNS, 3600.0, {})
    assert totals.expected_s is None
    assert str(totals) == "2 runs, 52 requests, 6,240 tokens; at most 2.0 h"
