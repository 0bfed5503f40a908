from typing import Any

import numpy as np
import pytest

from roofcast.data.errors import InputError
from roofcast.features.descriptors.parallelism import split_devices

UNEQUAL = "tp x pp x dp must equal n_accelerator in whole numbers"
NAMES = ("tp", "pp", "dp", "cp", "ep", "expert_rank")


def split(
    n_accelerator: int, *, is_mla: bool = False, n_filled: float = 0.2, is_layered: bool = False, **cells: Any
) -> dict[str, float]:
    questions = {name: np.array([cell]) for name, cell in {"n_accelerator": n_accelerator, **cells}.items()}
    columns = split_devices(questions, np.array([is_mla]), np.array([n_filled]), np.array([is_layered]))
    return {name.removeprefix("config."): float(values[0]) for name, values in columns.items()}


def shares(n_accelerator: int, **told: Any) -> tuple[float, ...]:
    found = split(n_accelerator, **told)
    return tuple(found[name] for name in NAMES)


@pytest.mark.parametrize(
    ("n", "cells", "expected"),
    [
        (1, {}, (1, 1, 1, 1, 1, 1)),
        (8, {}, (8, 1, 1, 1, 1, 8)),
        (8, {"pp": 2}, (4, 2, 1, 1, 1, 4)),
        (8, {"dp": 4}, (2, 1, 4, 1, 1, 2)),
        (8, {"cp": 2}, (4, 1, 1, 2, 1, 4)),
        (8, {"ep": 8}, (8, 1, 1, 1, 8, 8)),
        (8, {"tp": 1, "dp": 8, "ep": 8}, (1, 1, 8, 1, 8, 8)),
        (8, {"tp": 1, "dp": 8, "moe_tp": 8}, (1, 1, 8, 1, 1, 8)),
        (8, {"tp": 2, "dp": 4, "moe_tp": 2, "ep": 4}, (2, 1, 4, 1, 4, 8)),
        (8, {"dp": 8, "n_filled": 5}, (1, 1, 8, 1, 1, 8)),
        (8, {"dp": 8, "n_filled": 5, "ep": 8}, (1, 1, 8, 1, 8, 8)),
        (16, {"tp": 4, "dp": 2, "pp": 2, "ep": 64}, (4, 2, 2, 1, 8, 8)),
        # without a stated split, attention of wide replicas is data parallel
        (32, {}, (8, 1, 4, 1, 32, 32)),
        (32, {"is_mla": True}, (1, 1, 32, 1, 32, 32)),
        (32, {"tp": 32}, (32, 1, 1, 1, 1, 32)),
        (32, {"pp": 2}, (8, 2, 2, 1, 16, 16)),
        (32, {"ep": 8}, (8, 1, 4, 1, 8, 8)),
        (32, {"load": "offline"}, (8, 1, 4, 1, 32, 32)),
        # for requests in flight a blank split shares every layer
        (8, {"concurrency": 8}, (8, 1, 1, 1, 1, 8)),
        (8, {"load": "static_batch"}, (8, 1, 1, 1, 1, 8)),
        (8, {"request_rate": 2.0}, (8, 1, 1, 1, 1, 8)),
        # a stated split is kept where throughput is asked
        (8, {"load": "offline", "tp": 8}, (8, 1, 1, 1, 1, 8)),
        (8, {"load": "offline", "tp": 2, "dp": 4}, (2, 1, 4, 1, 1, 2)),
        (8, {"load": "offline", "dp": 2}, (4, 1, 2, 1, 1, 4)),
        (8, {"load": "offline", "pp": 2}, (1, 2, 4, 1, 1, 1)),
        (8, {"load": "offline", "cp": 2}, (1, 1, 4, 2, 1, 1)),
        # engines that split by layers make a pipeline
        (6, {"is_layered": True}, (1, 6, 1, 1, 1, 1)),
        (6, {"is_layered": True, "tp": 6}, (6, 1, 1, 1, 1, 6)),
        (6, {"is_layered": True, "pp": 2}, (3, 2, 1, 1, 1, 3)),
    ],
)
def test_who_shares_what(n: int, cells: dict[str, Any], expected: tuple[float, ...]) -> None:
    assert shares(n, **cells) == expected


@pytest.mark.parametrize("purpose", [{"load": "offline"}, {"load": "open_loop", "request_rate": 2}])
@pytest.mark.parametrize(
    ("n", "n_filled", "n_copy"),
    [
        (8, 0.01, 8),
        (8, 0.5, 8),
        (8, 0.51, 4),
        (8, 1.0, 4),
        (8, 1.2, 2),
        (8, 2.1, 1),
        (8, 9.0, 1),
        (6, 1.0, 3),
        (3, 1.0, 1),
    ],
)
def test_for_throughput_a_blank_split_is_as_many_copies_as_leave_room_for_a_cache(
    n: int, n_filled: float, n_copy: int, purpose: dict[str, Any]
) -> None:
    assert shares(n, n_filled=n_filled, **purpose) == (n / n_copy, 1, n_copy, 1, 1, n / n_copy)


def test_copies_may_differ_from_question_to_question() -> None:
    questions = {"n_accelerator": np.full(3, 4), "load": np.array(["offline", "closed_loop", "offline"])}
    found = split_devices(questions, np.zeros(3, dtype=bool), np.array([0.2, 0.2, 0.9]), np.zeros(3, dtype=bool))
    assert found["config.dp"].tolist() == [4, 1, 2]


def test_prefill_apart_makes_no_copies() -> None:
    told: dict[str, Any] = {"n_prefill_accelerator": 8, "n_decode_accelerator": 8}
    assert split(16, request_rate=2.0, **told) == split(16, **told)


def test_prefill_apart_leaves_the_decode_workers() -> None:
    found = split(24, n_prefill_accelerator=8, n_decode_accelerator=16, tp=8)
    assert (found["n_accelerator"], found["n_prefill_accelerator"]) == (16, 8)
    assert (found["tp"], found["dp"], found["expert_rank"]) == (8, 2, 8)
    assert split(24, n_prefill_accelerator=16)["n_accelerator"] == 8


def test_experts_of_one_decode_worker_stay_in_it() -> None:
    found = split(40, n_prefill_accelerator=8, n_decode_accelerator=32, tp=1, dp=16, ep=16)
    assert (found["tp"], found["dp"], found["ep"], found["expert_rank"]) == (1, 32, 16, 16)


@pytest.mark.parametrize(("name", "value"), [("dp", 0.5), ("dp", 0), ("pp", 0), ("pp", 1.5), ("cp", -1)])
def test_a_broken_share_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"{name}: must be a whole number of at least 1, got {value:g}"):
        split(8, **{name: value})


@pytest.mark.parametrize(
    ("n", "cells", "problem"),
    [
        (4, {"tp": 2}, UNEQUAL),
        (4, {"tp": 4, "dp": 2}, UNEQUAL),
        (1, {"tp": 1, "pp": 2}, UNEQUAL),
        (4, {"pp": 3}, UNEQUAL),
        (2, {"dp": 4}, UNEQUAL),
        (8, {"tp": 8, "cp": 2}, "tp x pp x dp x cp must equal n_accelerator .*, got 8 x 1 x 1 x 2 and 8"),
        (
            12,
            {"n_prefill_accelerator": 4, "tp": 3},
            "tp x pp x dp must divide n_decode_accelerator .*, got 3 x 1 x 1 and 8",
        ),
        (16, {"n_prefill_accelerator": 8, "tp": 1.5}, "whole numbers"),
    ],
)
def test_a_split_that_does_not_multiply_up_is_refused(n: int, cells: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=f"tp: {problem}" if "must" in problem else problem) as caught:
        split(n, **cells)
    assert caught.value.field == "tp"
