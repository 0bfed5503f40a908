import numpy as np
import pandas as pd
import pytest

from roofcast.training.dataset.stacks import MIN_ROW, competent_rows

STEADY = {
    "config.date": 2026.5, "workload.is_static": 0.0, "workload.n_request": 200.0, "workload.n_wave": 10.0,
    "workload.request_rate_per_s": np.nan,
}  # fmt: skip


def competent(changes: dict[str, float], n: int = MIN_ROW) -> pd.Series:
    """Return whether n rows of one owner with changes are competent, beside a steady lab."""
    lab, other = [STEADY] * MIN_ROW, [STEADY | changes] * n
    stacks = pd.Series([*(["lab/a"] * MIN_ROW), *(["other/b"] * n)])
    rows = competent_rows(pd.DataFrame([*lab, *other]), stacks)
    assert rows[:MIN_ROW].all()
    return rows[MIN_ROW:]


@pytest.mark.parametrize(
    ("name", "value", "is_competent"),
    [
        ("config.date", 2024.6, True),
        ("config.date", 2024.4, False),
        ("workload.is_static", 1.0, False),
        ("workload.n_request", 9.0, False),
        ("workload.n_request", np.nan, False),
        ("workload.n_wave", 1.0, False),
        ("workload.n_wave", np.nan, False),
    ],
)
def test_competent_operators_run_recent_software_steadily_and_tell_how(
    name: str, value: float, is_competent: bool
) -> None:
    assert (competent({name: value}) == is_competent).all()


def test_requests_that_arrive_at_a_rate_need_not_fill_slots() -> None:
    assert competent({"workload.n_wave": np.nan, "workload.request_rate_per_s": 2.0}).all()


def test_an_owner_of_few_rows_is_not_competent() -> None:
    assert not competent({}, MIN_ROW - 1).any()
