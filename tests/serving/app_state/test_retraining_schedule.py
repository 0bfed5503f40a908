import datetime as dt

import pytest

from roofcast.data.errors import InputError
from roofcast.serving.app_state.retraining_schedule import CURE, DueTimes, RetrainingSchedule, next_retraining_at
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


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        (["02:29:59", "02:31:01", "02:32:01"], [False, True, False]),  # the minute itself was not checked
        (["02:30:00", "02:30:59", "02:31:59"], [True, False, False]),  # it was twice
        (["02:29:00", "09:00:00", "09:01:00"], [False, True, False]),  # suspended, or the clock was set forward
        (["23:00:00", "02:29:00", "02:30:05"], [True, False, True]),  # the clock was set back
    ],
)
def test_a_time_between_two_checks_is_due_once(checks: list[str], expected: list[bool]) -> None:
    times = DueTimes(RetrainingSchedule("30 2 * * *"), dt.datetime(2026, 11, 24, 2, 0, tzinfo=dt.UTC))
    assert [times.is_due(dt.datetime.fromisoformat(f"2026-11-24 {check}")) for check in checks] == expected


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
