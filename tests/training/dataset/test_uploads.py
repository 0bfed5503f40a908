"""Rows of API keys in the training set: apart from those of others, whatever they are called."""

from __future__ import annotations

import numpy as np
import pandas as pd

from roofcast.data.catalog import load_catalog
from roofcast.training.dataset.training_set import TrainingSet, build_training_set
from tests.training.builders import measurements

ROW = {
    "model": "meta-llama/Llama-3.1-8B",
    "accelerator": "nvidia-h100-sxm-80gb",
    "engine": "vllm",
    "campaign": "silicon",
}
LATENCY = {"ttft_s": 0.05, "statistic": "mean", "status": "ok"}


def build(rows: pd.DataFrame, uploaders: list[str]) -> TrainingSet:
    catalog = load_catalog()
    keys = pd.Series(uploaders, dtype=object)
    return build_training_set(
        rows, catalog.models, catalog.accelerators, n_own=sum(map(bool, uploaders)), uploaders=keys
    )


def test_stacks_and_campaigns_of_a_key_are_its_own() -> None:
    rows = measurements(
        {**ROW, **LATENCY, "concurrency": 1, "tpot_s": 0.008},
        {**ROW, **LATENCY, "concurrency": 2, "tpot_s": 0.009, "stack": "inferencex"},
    )
    data = build(rows, ["", "ci"])
    assert data.stacks.tolist() == ["silicon", "key:ci/inferencex"]
    assert data.measurements["campaign"].tolist() == ["silicon", "key:ci/silicon"]


def test_rows_of_a_key_do_not_contradict_those_of_others_out_of_training() -> None:
    loads, step = [1, 2, 4, 8, 2, 4], [0.008, 0.009, 0.010, 0.011, 0.08, 0.09]
    rows = measurements(
        *({**ROW, **LATENCY, "concurrency": n, "tpot_s": s} for n, s in zip(loads, step, strict=True))
    )
    together = build(rows, [""] * 6)
    assert together.set_aside.get("not_monotone", 0) > 0
    apart = build(rows, [""] * 4 + ["ci"] * 2)
    assert "not_monotone" not in apart.set_aside
    assert (apart.stacks == "silicon").sum() == 4


def test_failures_that_a_key_reports_are_no_failures_of_others() -> None:
    failed = {**ROW, "concurrency": 1, "status": "out_of_memory", "load": "static_batch"}
    rows = measurements({**ROW, **LATENCY, "concurrency": 1, "tpot_s": 0.008}, failed)
    attempts = [build(rows, uploaders).attempts for uploaders in (["", ""], ["", "ci"])]
    assert [np.count_nonzero(~a.ran) for a in attempts if a is not None] == [1, 0]
