from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.training.lifecycle.learned_targets import LEARNED_TARGETS, LearnedTarget
from roofcast.training.lifecycle.ratio_limits import MARGIN, MIN_OWNER, MIN_ROW, RatioLimits
from roofcast.training.lifecycle.shipped import shipped_limits

N_ROW = 4 * MIN_ROW


def rows(n: int, **changes: object) -> pd.DataFrame:
    columns = {"engine": "vllm", "accelerator": "h100", "load": "closed_loop", "stack": "", "campaign": "own"}
    return pd.DataFrame({**columns, **changes}, index=range(n))


def limits(n_owner: int = 4) -> RatioLimits:
    """Return limits by rows of some owners on one accelerator, of ratios from 0.5 to 2."""
    shipped = rows(N_ROW, stack=[f"lab{i % n_owner}/a" for i in range(N_ROW)])
    ratios = np.linspace(-np.log(2), np.log(2), N_ROW)
    return RatioLimits.fit(shipped, pd.DataFrame({"tpot_s": ratios, "ttft_s": np.nan}))


def reasons(*ratios: float, **changes: object) -> list[str]:
    table = pd.DataFrame({"tpot_s": np.log(ratios), "ttft_s": np.nan})
    return limits().reasons(rows(len(ratios), **changes), table).tolist()


def test_a_row_far_from_alike_rows_has_a_reason() -> None:
    found = reasons(1.0, 2 * np.exp(MARGIN) * 1.01, 10.0, 0.1)
    assert [bool(reason) for reason in found] == [False, True, True, True]
    assert found[2] == (
        "tpot_s is 10 times the estimate; the 200 measurements of 4 owners with vllm h100 closed_loop allow 0.336 to "
        "2.98 times"
    )


def test_where_nobody_measured_the_same_the_next_wider_group_counts() -> None:
    (reason,) = reasons(10.0, accelerator="l4")
    assert "4 owners with vllm closed_loop allow" in reason
    (reason,) = reasons(10.0, accelerator="l4", engine="new", load="open_loop")
    assert "the 200 measurements of 4 owners allow" in reason


@pytest.mark.parametrize(("n_owner", "is_limited"), [(MIN_OWNER - 1, False), (MIN_OWNER, True)])
def test_few_owners_limit_nobody(n_owner: int, is_limited: bool) -> None:
    """However many their rows are: they may all come from one kind of setup."""
    table = pd.DataFrame({"tpot_s": [np.log(10.0)], "ttft_s": np.nan})
    (reason,) = limits(n_owner).reasons(rows(1), table)
    assert bool(reason) is is_limited


def test_a_metric_that_nobody_measured_has_no_limits() -> None:
    table = pd.DataFrame({"ttft_s": [9.0], "tpot_s": [np.nan]})
    assert limits().reasons(rows(1), table).tolist() == [""]


@pytest.mark.parametrize("target", LEARNED_TARGETS.values(), ids=LEARNED_TARGETS)
def test_the_limits_of_the_package_rest_on_its_rows_and_code(target: LearnedTarget[Any, Any]) -> None:
    stale = f"the limits of the quarantine are stale; run `{target.limits_file.command}` and commit what it writes"
    assert target.limits_file.read_manifest() == target.limits_file.current_manifest(), stale


@pytest.mark.slow
@pytest.mark.parametrize("target", LEARNED_TARGETS.values(), ids=LEARNED_TARGETS)
def test_the_limits_of_the_package_are_those_of_its_rows(target: LearnedTarget[Any, Any]) -> None:
    stored, fitted = shipped_limits(target.name), RatioLimits.fit(*target.load_ratios())
    for one, other in zip(stored.by_group, fitted.by_group, strict=True):
        pd.testing.assert_frame_equal(one, other, check_index_type=False, check_names=False)
