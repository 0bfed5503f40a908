from __future__ import annotations

import pandas as pd
import pytest

from roofcast.features.columns import ENGINES
from roofcast.features.examples import example_descriptors
from roofcast.training.learner.errors.group_keys import build_group_keys
from roofcast.training.learner.trees.support_gate import HALF_LINEAGE, SupportGate


def describe(engine: str = "vllm", **changes: float) -> pd.DataFrame:
    columns = {name.replace("__", "."): value for name, value in changes.items()}
    row = {name: values[0] for name, values in example_descriptors().items()}
    return pd.DataFrame([{**row, "config.engine": float(ENGINES.index(engine)), **columns}])


def fit(rows: pd.DataFrame, *lineages: str) -> SupportGate:
    return SupportGate.fit(build_group_keys(rows), pd.Series(lineages))


def weight(gate: SupportGate, query: pd.DataFrame) -> list[float]:
    return list(gate.weight(build_group_keys(query), query["config.engine"].to_numpy()))


def test_trees_weigh_more_the_more_lineages_are_measured_nearby() -> None:
    known = pd.concat([describe()] * 4, ignore_index=True)
    for n in (1, 3):
        gate = fit(known.iloc[:n], *(f"lineage {i}" for i in range(n)))
        assert weight(gate, describe()) == [pytest.approx(n / (n + HALF_LINEAGE))]


def test_rows_of_one_lineage_count_once() -> None:
    gate = fit(pd.concat([describe()] * 3), *"aaa")
    assert weight(gate, describe()) == [pytest.approx(1 / (1 + HALF_LINEAGE))]


def test_an_engine_on_an_unmeasured_accelerator_is_left_to_its_estimate() -> None:
    gate = fit(describe(), "a")
    assert weight(gate, describe(hardware__bandwidth_byte_per_s=1e12)) == [0.0]
    assert weight(gate, describe("sglang")) == [0.0]


def test_trees_alone_correct_engines_without_kernel_tables() -> None:
    assert weight(fit(describe(), "a"), describe("tgi")) == [1.0]
