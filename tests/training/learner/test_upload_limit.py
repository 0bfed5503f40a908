from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from roofcast.data.measurements.row_owners import UNPROVEN
from roofcast.training.learner.upload_limit import MAX_SHARE, MAX_TOTAL_SHARE, MAX_UNPROVEN_SHARE, limit_uploads


def hashes(**codes: list[int]) -> dict[str, np.ndarray]:
    n = len(next(iter(codes.values())))
    columns = {"accelerator": [0] * n, "engine": [0] * n, "load": [0] * n} | codes
    return {name: np.array(values, dtype=np.uint64) for name, values in columns.items()}


def test_a_key_weighs_at_most_its_share_of_others_in_each_group() -> None:
    stacks = pd.Series(["lab"] * 10 + ["key:a/x"] * 100 + ["key:b/x"] * 100)
    weight = limit_uploads(np.ones(210), stacks, hashes(accelerator=[1] * 210))
    assert weight[:10].tolist() == [1.0] * 10
    assert weight[10:110].sum() == pytest.approx(MAX_SHARE * 10)
    assert weight[110:].sum() == pytest.approx(MAX_SHARE * 10)


def test_rows_that_have_not_earned_weight_share_the_least_of_all_and_keys_a_total() -> None:
    stacks = pd.Series(["lab"] * 100 + [f"key:{UNPROVEN}/x"] * 50)
    weight = limit_uploads(np.ones(150), stacks, hashes(accelerator=[1] * 150))
    assert weight[100:].sum() == pytest.approx(MAX_UNPROVEN_SHARE * 100)
    stacks = pd.Series(["lab"] * 100 + [f"key:{i // 50}/x" for i in range(500)])
    weight = limit_uploads(np.ones(600), stacks, hashes(accelerator=[1] * 600))
    assert weight[100:].sum() == pytest.approx(MAX_TOTAL_SHARE * 100)


def test_the_share_holds_in_the_group_with_fewest_others() -> None:
    accelerator = [1] * 90 + [2] * 10 + [2] * 50
    weight = limit_uploads(np.ones(150), pd.Series(["lab"] * 100 + ["key:a/x"] * 50), hashes(accelerator=accelerator))
    assert weight[100:].sum() == pytest.approx(MAX_SHARE * 10)


def test_where_nobody_else_measured_only_the_total_is_limited() -> None:
    accelerator = [1] * 100 + [2] * 5
    weight = limit_uploads(np.ones(105), pd.Series(["lab"] * 100 + ["key:a/x"] * 5), hashes(accelerator=accelerator))
    assert weight[100:].tolist() == [1.0] * 5


def test_the_total_is_limited_where_groups_are_not() -> None:
    """A key alone on its accelerator has no others there; the hundred rows elsewhere limit it."""
    accelerator = [1] * 100 + [2] * 50 + [1] * 50
    stacks = pd.Series(["lab"] * 100 + ["key:a/x"] * 50 + ["key:b/x"] * 50)
    weight = limit_uploads(np.ones(200), stacks, hashes(accelerator=accelerator))
    assert weight[100:150].sum() == pytest.approx(MAX_SHARE * 100)
    assert weight[150:].sum() == pytest.approx(MAX_SHARE * 100)


@pytest.mark.parametrize("stack", ["", "lab", "key:a/x"])
def test_rows_of_one_kind_keep_their_weights(stack: str) -> None:
    weight = np.array([1.0, 2.0])
    assert limit_uploads(weight, pd.Series([stack] * 2), hashes(load=[0, 0])).tolist() == [1.0, 2.0]
