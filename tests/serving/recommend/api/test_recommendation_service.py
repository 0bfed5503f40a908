"""An answer about a stack says what it changes: hardware, cost, and why."""

import re
from types import SimpleNamespace
from typing import Any

import pytest

from roofcast.serving.recommend.answer.parts import PredictedMetric
from roofcast.serving.recommend.api.recommendation_service import calibration_text
from roofcast.serving.recommend.search.configurations import Replica
from tests.serving.http.test_stacks import add
from tests.serving.http_client import ACCELERATOR, Client, a_demand
from tests.serving.stacks.test_profiles import a_run

REPLICA = Replica("nvidia-h100-sxm-80gb", engine="vllm", weight_precision="bf16")


def an_entry(n: int, value: float = 0.032, p: float = 0.9, kind: str = "H100", users: float | None = 40.0) -> Any:
    offer = SimpleNamespace(id=kind, instance_type=kind)
    metrics = (
        PredictedMetric(
            metric="tpot_s", statistic="p95", value=value, low=0.01, high=0.05, limit=0.04, uncalibrated=0.02
        ),
    )
    return SimpleNamespace(
        offer=offer, replica=REPLICA, n_instance=n, cost_usd_per_h=2.05 * n, predictions=metrics, p_limits_met=p,
        users_per_replica=users, request_rate_per_replica=7.0, n_replica=n,
    )  # fmt: skip


def text(entry: Any, without: Any, calibrated: Any) -> str:
    result: Any = SimpleNamespace(
        entries=[entry] if entry else [], calibration_effect=SimpleNamespace(without=without, calibrated=calibrated)
    )
    return calibration_text("the stack profile rack-7", result, 0.8)


WITHOUT = "without the stack profile rack-7"
OTHER, BEFORE = an_entry(2, kind="A100"), an_entry(2, 0.02)
DEARER, SMALLER = an_entry(3, kind="A100"), SimpleNamespace(**vars(OTHER) | {"n_replica": 1})


@pytest.mark.parametrize(
    ("entry", "without", "calibrated", "parts"),
    [
        (
            an_entry(3), an_entry(2, 0.02, users=60), an_entry(2),
            [f"{WITHOUT}: 2 x H100 (tp1, vLLM, BF16) for 4.10 USD/h; with it: 3 x H100 (tp1, vLLM, BF16) for 6.15 "
             "USD/h, because on the former TPOT p95 is 32 ms, 1.60 times the 20 ms without it, so a replica serves "
             "40 users instead of 60 users"],
        ),
        (DEARER, BEFORE, an_entry(2, p=0.41), ["all limits are met with probability 0.41 instead of 0.90"]),
        (DEARER, BEFORE, an_entry(2, p=0.85), ["so a replica serves less within the limits"]),
        (
            OTHER, BEFORE, an_entry(2, p=0.85),
            ["both cost the same, and the latter meets all limits with probability 0.90 instead of 0.85"],
        ),
        (SMALLER, BEFORE, an_entry(2), ["and replicas of the latter have 1 accelerator instead of 2"]),
        (OTHER, BEFORE, an_entry(2), ["without it; both cost the same"]),
        (
            an_entry(1, 0.018), an_entry(2), an_entry(2),
            [WITHOUT, "because on the latter TPOT p95 is 18 ms, 0.90 times", ""],
        ),
        (an_entry(1), None, None, [f"{WITHOUT}: no deployment meets the limits; with it: 1 x", ""]),
        (None, an_entry(2), an_entry(2), [WITHOUT, "with it: no deployment meets the limits, because on", ""]),
        (an_entry(2), an_entry(2), an_entry(2), [f"{WITHOUT} the answer is the same, 2 x H100", ""]),
    ],
)  # fmt: skip
def test_a_stack_changes_hardware_and_cost_for_a_reason(
    entry: Any, without: Any, calibrated: Any, parts: list[str]
) -> None:
    """The parts stand in this order, the last at the end."""
    written = text(entry, without, calibrated)
    assert re.search(".*".join(map(re.escape, parts)) + "$", written), written


def test_without_a_comparison_the_answer_is_named() -> None:
    result: Any = SimpleNamespace(entries=[an_entry(2)], calibration_effect=None)
    assert calibration_text("the references", result, 0.8) == (
        "with the references: 2 x H100 (tp1, vLLM, BF16) for 4.10 USD/h"
    )


def test_the_answer_without_a_stack_is_that_of_a_request_without_it(shared: Client) -> None:
    add(shared, "slower", a_run(slower=3), a_run(64, slower=3))
    constraints = {"engines": ["vllm"], "accelerators": [ACCELERATOR]}
    demand = a_demand(limits=["tpot:p50<=1s"], constraints=constraints, n_entry=1)
    plain, calibrated = (
        shared.post("/v1/recommendations", demand | more).json() for more in ({}, {"stack": "slower"})
    )
    assert plain["without_stack"] is None
    assert plain["stack_effect"] is None
    without, first = calibrated["without_stack"], plain["entries"][0]
    for name in ("cost_usd_per_h", "n_instance", "n_replica", "accelerator", "instance_type", "tp"):
        assert without[name] == first[name]
    assert without["p_limits_met_without"] == pytest.approx(first["p_limits_met"])
    slow = {one["metric"]: one for one in without["predictions"]}["tpot_s"]
    assert slow["uncalibrated"] == pytest.approx(
        {one["metric"]: one for one in first["predictions"]}["tpot_s"]["value"]
    )
    assert slow["value"] > slow["uncalibrated"]
    assert f"for {first['cost_usd_per_h']:.3g} USD/h" in calibrated["stack_effect"]
