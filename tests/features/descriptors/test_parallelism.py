from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.errors import InputError
from roofcast.features.descriptors.parallelism import split_devices
from roofcast.features.descriptors.prediction_input import column_arrays

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
    ],
)
def test_who_shares_what(n: int, cells: dict[str, Any], expected: tuple[float, ...]) -> None:
    assert shares(n, **cells) == expected


def test_wide_replicas_run_attention_data_parallel_unless_told() -> None:
    assert shares(32) == (8, 1, 4, 1, 32, 32)
    assert shares(32, is_mla=True) == (1, 1, 32, 1, 32, 32)
    assert shares(32, tp=32) == (32, 1, 1, 1, 1, 32)
    assert shares(32, pp=2) == (8, 2, 2, 1, 16, 16)
    assert shares(32, ep=8) == (8, 1, 4, 1, 8, 8)


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


@pytest.mark.parametrize(
    "cells", [{"concurrency": 8}, {"load": "closed_loop"}, {"load": "static_batch"}, {}, {"request_rate": 2.0}]
)
def test_for_requests_in_flight_a_blank_split_shares_every_layer(cells: dict[str, Any]) -> None:
    assert shares(8, **cells) == (8, 1, 1, 1, 1, 8)


def test_a_split_that_is_told_is_kept_for_throughput_too() -> None:
    assert shares(8, load="offline", tp=8) == (8, 1, 1, 1, 1, 8)
    assert shares(8, load="offline", tp=2, dp=4) == (2, 1, 4, 1, 1, 2)
    assert shares(8, load="offline", dp=2) == (4, 1, 2, 1, 1, 4)
    assert shares(8, load="offline", pp=2) == (1, 2, 4, 1, 1, 1)
    assert shares(8, load="offline", cp=2) == (1, 1, 4, 2, 1, 1)
    assert shares(32, load="offline") == (8, 1, 4, 1, 32, 32), "a wide replica is one of experts"


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


@pytest.mark.parametrize(
    "cells",
    [
        {"n_accelerator": 4, "tp": 2},
        {"n_accelerator": 4, "tp": 4, "dp": 2},
        {"n_accelerator": 1, "tp": 1, "pp": 2},
        {"n_accelerator": 4, "pp": 3},
        {"n_accelerator": 2, "dp": 4},
    ],
)
def test_a_split_that_does_not_multiply_up_is_refused(cells: dict[str, float]) -> None:
    questions = column_arrays(pd.DataFrame([{"n_accelerator": 1}, cells]))
    with pytest.raises(InputError, match=r"tp: tp x pp x dp must equal n_accelerator in whole numbers") as caught:
        split_devices(questions, np.zeros(2, dtype=bool), np.full(2, 0.2), np.zeros(2, dtype=bool))
    assert caught.value.field == "tp"


def test_context_parallelism_is_part_of_the_message_where_it_is_given() -> None:
    with pytest.raises(InputError, match=r"tp x pp x dp x cp must equal n_accelerator .*, got 8 x 1 x 1 x 2 and 8"):
        split(8, tp=8, cp=2)


def test_a_split_that_leaves_part_of_a_decode_worker_is_refused() -> None:
    with pytest.raises(InputError, match=r"tp x pp x dp must divide n_decode_accelerator .*, got 3 x 1 x 1 and 8"):
        split(12, n_prefill_accelerator=4, tp=3)


@pytest.mark.parametrize(("name", "value"), [("dp", 0.5), ("dp", 0), ("pp", 0), ("pp", 1.5), ("cp", -1)])
def test_a_broken_share_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"{name}: must be a whole number of at least 1, got {value:g}"):
        split(8, **{name: value})


@pytest.mark.parametrize("tp", [3, 1.5, 0.25])
def test_decode_workers_that_do_not_fill_their_accelerators_are_refused(tp: float) -> None:
    with pytest.raises(InputError, match="whole numbers"):
        split(16, n_prefill_accelerator=8, n_decode_accelerator=8, tp=tp)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [({}, (1, 6, 1, 1, 1, 1)), ({"tp": 6}, (6, 1, 1, 1, 1, 6)), ({"pp": 2}, (3, 2, 1, 1, 1, 3))],
)
def test_engines_that_split_by_layers_make_a_pipeline(cells: dict[str, Any], expected: tuple[int, ...]) -> None:
    assert shares(6, is_layered=True, **cells) == expected
