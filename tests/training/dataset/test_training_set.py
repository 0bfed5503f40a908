from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.training.dataset.training_set import TrainingSet, build_training_set
from tests.builders import a_model, an_accelerator
from tests.training.builders import measurements

MODELS = {"a": a_model(id="a", fold_group="shape"), "b": a_model(id="b", fold_group="shape")}
PARTS = {"p": an_accelerator(id="p")}


def test_rows_that_cannot_be_used_are_left_out() -> None:
    known = {"model": "a", "accelerator": "p"}
    table = measurements(
        known,
        known | {"model": "x"},
        known | {"accelerator": "x"},
        known | {"status": "failed"},
        known | {"model": "b"},
    )
    data = build_training_set(table, MODELS, PARTS)
    assert data.measurements["model"].tolist() == ["a", "b"]
    assert data.groups.tolist() == ["shape", "shape"]
    assert len(data.X) == len(data.y) == len(set(data.ids)) == 2


def test_the_digest_knows_rows_and_not_their_order(subset: TrainingSet) -> None:
    rows = subset.measurements
    groups = set(subset.groups)
    models = {name: a_model(id=name) for name in rows["model"].unique()}
    parts = {name: an_accelerator(id=name) for name in rows["accelerator"].unique()}
    forward, backward = (build_training_set(table, models, parts) for table in (rows, rows.iloc[::-1]))
    assert len(groups) == 3
    assert forward.digest == backward.digest == subset.digest
    assert build_training_set(rows.iloc[1:], models, parts).digest != subset.digest


def test_taking_rows_keeps_the_tables_aligned(campaign: TrainingSet) -> None:
    taken = campaign.take((campaign.groups == "flan-ul2").to_numpy())
    for part in (taken.measurements, taken.X, taken.y, taken.ids):
        assert part.index.equals(taken.groups.index)
    assert set(taken.measurements["model"]) == {"google/flan-ul2"}


def test_ones_own_rows_are_one_stack_whatever_their_campaign_is_called() -> None:
    rows = measurements(*({"model": "a", "accelerator": "p", "tpot_s": 0.01 + i / 1000} for i in range(3)))
    rows = rows.assign(campaign=["silicon", "ours", "silicon"])
    data = build_training_set(rows, MODELS, PARTS, n_own=2)
    assert data.stacks.tolist() == ["silicon", "", ""]
    assert data.take(np.array([False, True, True])).stacks.tolist() == ["", ""]


@pytest.mark.parametrize(
    ("measured_by", "stacks"),
    [("", ["nightly"]), ("b", ["key:a/0", "key:b/nightly"])],
)
def test_an_upload_that_copies_rows_of_others_removes_none_of_them(measured_by: str, stacks: list[str]) -> None:
    table = pd.concat([measurements({"model": "a", "accelerator": "p"})] * 3, ignore_index=True)
    table["campaign"] = ["0", "0", "nightly"]
    data = build_training_set(table, MODELS, PARTS, uploaders=pd.Series(["a", "a", measured_by]))
    assert data.stacks.tolist() == stacks


ROW = {"model": "a", "accelerator": "p", "engine": "vllm", "campaign": "silicon", "statistic": "mean"}


def uploaded(uploaders: list[str], *rows: dict[str, Any]) -> TrainingSet:
    """Return the training set of rows of API keys, or of the operator where there is none."""
    keys = pd.Series(uploaders, dtype=object)
    table = measurements(*(ROW | {"ttft_s": 0.05} | row for row in rows))
    return build_training_set(table, MODELS, PARTS, n_own=sum(map(bool, uploaders)), uploaders=keys)


def test_stacks_and_campaigns_of_a_key_are_its_own() -> None:
    data = uploaded(
        ["", "ci"], {"concurrency": 1, "tpot_s": 0.008}, {"concurrency": 2, "tpot_s": 0.009, "stack": "inferencex"}
    )
    assert data.stacks.tolist() == ["silicon", "key:ci/inferencex"]
    assert data.measurements["campaign"].tolist() == ["silicon", "key:ci/silicon"]


def test_rows_of_a_key_do_not_contradict_those_of_others_out_of_training() -> None:
    steps = [(1, 0.008), (2, 0.009), (4, 0.010), (8, 0.011), (2, 0.08), (4, 0.09)]
    rows = [{"concurrency": n, "tpot_s": s} for n, s in steps]
    assert uploaded([""] * 6, *rows).set_aside.get("not_monotone", 0) > 0
    apart = uploaded([""] * 4 + ["ci"] * 2, *rows)
    assert "not_monotone" not in apart.set_aside
    assert (apart.stacks == "silicon").sum() == 4


def test_failures_that_a_key_reports_are_no_failures_of_others() -> None:
    failed = {"concurrency": 1, "ttft_s": None, "status": "out_of_memory", "load": "static_batch"}
    for uploaders, n_failed in ((["", ""], 1), (["", "ci"], 0)):
        attempts = uploaded(uploaders, {"concurrency": 1, "tpot_s": 0.008}, failed).attempts
        assert attempts is not None
        assert np.count_nonzero(~attempts.ran) == n_failed
