import numpy as np
import pandas as pd
import pytest

from roofcast.data.measurements.row_owners import UNPROVEN
from roofcast.training.learner.upload_limit import MAX_SHARE, MAX_TOTAL_SHARE, MAX_UNPROVEN_SHARE, limit_uploads


def hashes(**codes: list[int]) -> dict[str, np.ndarray]:
    n = len(next(iter(codes.values())))
    columns = {"accelerator": [0] * n, "engine": [0] * n, "load": [0] * n} | codes
    return {name: np.array(values, dtype=np.uint64) for name, values in columns.items()}


@pytest.mark.parametrize(
    ("n_other", "keys", "accelerator", "weights"),
    [
        (10, {"a": 100, "b": 100}, [1] * 210, {"a": MAX_SHARE * 10, "b": MAX_SHARE * 10}),
        (100, {UNPROVEN: 50}, [1] * 150, {UNPROVEN: MAX_UNPROVEN_SHARE * 100}),
        (100, {"a": 50}, [1] * 90 + [2] * 60, {"a": MAX_SHARE * 10}),
        (100, {"a": 5}, [1] * 100 + [2] * 5, {"a": 5.0}),
        (100, {"a": 50, "b": 50}, [1] * 100 + [2] * 50 + [1] * 50, {"a": MAX_SHARE * 100, "b": MAX_SHARE * 100}),
        (100, {str(i): 50 for i in range(10)}, [1] * 600, dict.fromkeys("0123456789", MAX_TOTAL_SHARE * 10)),
    ],
    ids=["each key", "unearned weight", "fewest others", "nobody else", "alone on its accelerator", "all keys"],
)
def test_keys_weigh_at_most_their_share_of_others_in_each_group_and_in_all(
    n_other: int, keys: dict[str, int], accelerator: list[int], weights: dict[str, float]
) -> None:
    stacks = pd.Series(["lab"] * n_other + [f"key:{name}/x" for name, n in keys.items() for _ in range(n)])
    weight = limit_uploads(np.ones(len(stacks)), stacks, hashes(accelerator=accelerator))
    assert weight[:n_other].tolist() == [1.0] * n_other
    found = pd.Series(weight).groupby(stacks).sum()
    assert {name: found[f"key:{name}/x"] for name in keys} == pytest.approx(weights)


@pytest.mark.parametrize("stack", ["", "lab", "key:a/x"])
def test_rows_of_one_kind_keep_their_weights(stack: str) -> None:
    weight = np.array([1.0, 2.0])
    assert limit_uploads(weight, pd.Series([stack] * 2), hashes(load=[0, 0])).tolist() == [1.0, 2.0]
