from types import SimpleNamespace
from typing import Any

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import SchemaError
from roofcast.serving.measure import choice
from roofcast.serving.measure.choice import choose_runs, planned_inputs
from roofcast.serving.measure.plan import PlannedRun

CELLS = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "nvidia-h100-sxm-80gb", "engine": "vllm"}
RUNS = [PlannedRun(64, 16, 1), PlannedRun(64, 16, request_rate=0.5), PlannedRun(900, 100, 8, n_request=40)]


def test_inputs_are_the_runs_with_what_all_share() -> None:
    inputs = planned_inputs(RUNS, CELLS, load_catalog())
    assert inputs["n_input_token"].tolist() == [64, 64, 900]
    assert inputs["request_rate"].fillna(0).tolist() == [0, 0.5, 0]
    assert inputs["n_request"].tolist() == [20, 20, 40]
    with pytest.raises(SchemaError, match=r"in64-out16-c1-n20: accelerator: no 'nvidia-h10' is known"):
        planned_inputs(RUNS, CELLS | {"accelerator": "nvidia-h10"}, load_catalog())
    with pytest.raises(SchemaError, match=r"in2000000-out16-c1-n20: .*context"):
        planned_inputs([PlannedRun(2_000_000, 16, 1)], CELLS, load_catalog())


def test_runs_are_taken_in_the_order_of_the_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    conditioned: list[Any] = []

    def condition_on(points: Any) -> Any:
        conditioned.append(points)
        return predictor

    predictor: Any = SimpleNamespace(metrics_=("tpot_s", "e2e_s"), condition_on=condition_on)

    def rank(_: Any, X: Any, metrics: list[str], n: int) -> list[SimpleNamespace]:
        assert (len(X), metrics, n) == (3, ["tpot_s"], 2)
        return [SimpleNamespace(row=2), SimpleNamespace(row=0)]

    monkeypatch.setattr(choice, "rank_measurements", rank)
    points: Any = object()
    inputs = planned_inputs(RUNS, CELLS, load_catalog())
    assert choose_runs(RUNS, inputs, load_catalog(), predictor, points=points, n=2) == [RUNS[2], RUNS[0]]
    assert conditioned == [points]
