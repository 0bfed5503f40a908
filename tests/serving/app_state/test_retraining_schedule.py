from __future__ import annotations

import datetime as dt

import pytest

from roofcast.data.errors import InputError
from roofcast.serving.app_state.retraining_schedule import CURE, RetrainingSchedule, next_retraining_at
from roofcast.serving.app_state.settings import load_settings

NOW = dt.datetime(2026, 11, 24, 2, 30, 20, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", "2026-11-24 02:31"),
        ("30 2 * * *", "2026-11-25 02:30"),
        ("*/20 3-4 * * *", "2026-11-24 03:00"),
        ("0 0 * * 0", "2026-11-29 00:00"),
        ("0 0 29 2 *", "2028-02-29 00:00"),
    ],
)
def test_the_next_time_is_that_of_cron(expression: str, expected: str) -> None:
    found = next_retraining_at(expression, NOW)
    assert found == dt.datetime.fromisoformat(expected).replace(tzinfo=dt.UTC)
    assert RetrainingSchedule(expression).is_due(found)


def test_times_are_utc() -> None:
    east = dt.timezone(dt.timedelta(hours=5))
    assert next_retraining_at("30 2 * * *", NOW.astimezone(east)) == dt.datetime(2026, 11, 25, 2, 30, tzinfo=dt.UTC)


def test_without_an_expression_there_is_no_next_time() -> None:
    assert next_retraining_at("", NOW) is None


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("30 2 * *", "it has 4 fields"),
        ("@daily", "it has 1 fields"),
        ("61 2 * * *", "61 is not a valid input"),
        ("0 0 * * mon", "mon is not a valid input"),
        ("*/0 * * * *", "slice step cannot be zero"),
        ("0 0 31 2 *", "no date has its day and month"),
        ("0 0 1 * 1", "give a day of the month or a day of the week, not both"),
    ],
)
def test_an_invalid_expression_names_the_setting_and_the_cure(
    expression: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOFCAST_RETRAIN_AT", expression)
    with pytest.raises(InputError) as caught:
        load_settings()
    assert str(caught.value) == f"ROOFCAST_RETRAIN_AT: {CURE}; {problem}, got {expression!r}"
