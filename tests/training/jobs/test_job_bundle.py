"""The bundle of training jobs."""

from copy import copy
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from roofcast.data.errors import InputError
from roofcast.training.jobs.job_bundle import JobBundle
from roofcast.training.jobs.job_predictor import RATE
from roofcast.training.learner.errors.error_distribution import ErrorScaleModel
from roofcast.training.lifecycle.bundles.tree_check import check_trees
from roofcast.training.lifecycle.learned_targets import JOB_TARGET
from roofcast.training.lifecycle.shipped import load_shipped

JOB = pd.DataFrame([{
    "model": "meta-llama/Llama-3.1-8B", "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": 64,
    "n_global_batch_sequence": 128, "n_token_per_sequence": 8192, "framework": "torchtitan",
}])  # fmt: skip


@pytest.fixture(scope="module")
def bundle() -> JobBundle:
    return load_shipped(JOB_TARGET)


def test_a_saved_bundle_answers_bit_for_bit_the_same(bundle: JobBundle, tmp_path: Path) -> None:
    path = tmp_path / "copy.roofcast"
    copy = JobBundle.load(path, bundle.save(path))
    one, other = (b.predictor.predict(JOB) for b in (bundle, copy))
    for name in one.__dataclass_fields__:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
    assert copy.row_ids == bundle.row_ids
    assert copy.scores == bundle.scores


def test_another_checksum_or_layout_is_refused(bundle: JobBundle, tmp_path: Path) -> None:
    path = tmp_path / "copy.roofcast"
    checksum = bundle.save(path)
    other: type[JobBundle] = type("Other", (JobBundle,), {"layout": staticmethod(lambda: "another")})
    with pytest.raises(InputError, match="registered checksum"):
        JobBundle.load(path, "0" * 64)
    with pytest.raises(InputError, match=f"of layout {JobBundle.layout()}"):
        other.load(path, checksum)


def test_damaged_trees_are_refused(bundle: JobBundle) -> None:
    check_trees(bundle, "f")
    model = bundle.predictor.models_[RATE]
    scale = copy(model.scale.log_scale)
    scale.members_ = [member.replace(b"gbtree", b"gblinr") for member in scale.members_]
    other = type(bundle.predictor)()
    other.__dict__ |= bundle.predictor.__dict__ | {
        "models_": {**bundle.predictor.models_, RATE: replace(model, scale=ErrorScaleModel(scale))}
    }
    with pytest.raises(InputError, match=r"the trees of predictor\.models_\.rate\.scale\.log_scale are damaged"):
        check_trees(replace(bundle, predictor=other), "f")
