"""The shipped predictors of both targets, and fingerprints of what they follow from."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.errors import InputError
from roofcast.data.job_campaigns import load_job_campaigns
from roofcast.training.jobs.job_predictor import JobPredictor
from roofcast.training.lifecycle import shipped_file
from roofcast.training.lifecycle.bundles.bundle_io import sha256
from roofcast.training.lifecycle.fingerprints import syntax
from roofcast.training.lifecycle.inference_learner import fit_bundle
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET, LEARNED_TARGETS, LearnedTarget
from roofcast.training.lifecycle.shipped import (
    load_shipped,
    load_shipped_job_predictor,
    shipped_predictor,
    shipped_rows,
)

BOTH = pytest.mark.parametrize("target", LEARNED_TARGETS.values(), ids=LEARNED_TARGETS)
STALE = "the shipped predictor is stale; run `{}` and commit what it writes"


@BOTH
def test_a_shipped_predictor_follows_from_data_and_code(
    target: LearnedTarget[Any, Any],
) -> None:
    """`code` covers syntax trees; comments, docstrings and formatting do not count."""
    shipped = target.predictor_file
    stored, current = shipped.read_manifest(), shipped.current_manifest(target.bundles.layout())
    assert stored == current, STALE.format(shipped.command)


@BOTH
def test_a_shipped_predictor_is_read_as_a_champion(target: LearnedTarget[Any, Any]) -> None:
    predictor, digest = shipped_predictor(target), sha256(target.predictor_file.file)
    assert predictor is not None
    assert (predictor.champion.sha256, predictor.champion.version) == (digest, f"shipped-{digest[:8]}")
    assert load_shipped(target).fingerprint == target.bundles.layout()


@pytest.mark.slow
def test_a_new_fit_predicts_like_the_shipped_predictor() -> None:
    data, stale = shipped_rows(INFERENCE_TARGET), STALE.format(INFERENCE_TARGET.predictor_file.command)
    rows = data.X.iloc[::100]
    stored, fitted = load_shipped(INFERENCE_TARGET), fit_bundle(data)
    assert stored.row_ids == fitted.row_ids
    pd.testing.assert_frame_equal(stored.anchors.rows, fitted.anchors.rows, check_dtype=False, rtol=1e-3)
    assert stored.scores.keys() == fitted.scores.keys()
    for metric, scores in stored.scores.items():
        assert fitted.scores[metric] == pytest.approx(scores, rel=1e-3), stale
    one, other = (bundle.predictor.predict_distribution(rows) for bundle in (stored, fitted))
    for old, new in zip((one.median, *one.interval(0.9)), (other.median, *other.interval(0.9)), strict=True):
        np.testing.assert_allclose(old, new, rtol=1e-3, err_msg=stale)


@pytest.mark.slow
def test_a_new_fit_predicts_like_the_shipped_predictor_of_training_jobs() -> None:
    """Fits to all campaigns: no smaller fit tells whether the file is that of the data."""
    rows = load_job_campaigns()
    one, other = (p.predict(rows.iloc[::50]) for p in (load_shipped_job_predictor(), JobPredictor().fit(rows)))
    for name in ("token_per_s_per_accelerator", "peak_memory_byte_high", "p_fits"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-3)


@BOTH
@pytest.mark.parametrize("text", ["", "{}", '{"sha256": "0"}', None])
def test_a_source_tree_without_a_valid_manifest_has_no_shipped_predictor(
    text: str | None,
    target: LearnedTarget[Any, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(shipped_file, "FOLDER", tmp_path)
    if text is not None:
        target.predictor_file.file.with_suffix(".json").write_text(text)
    assert shipped_predictor(target) is None
    assert f"run `{target.predictor_file.command}`" in caplog.text


@BOTH
def test_a_shipped_predictor_of_another_layout_is_not_used(
    target: LearnedTarget[Any, Any], caplog: pytest.LogCaptureFixture
) -> None:
    other = replace(target, bundles=type("Other", (target.bundles,), {"layout": staticmethod(lambda: "another")}))
    assert shipped_predictor(other) is None
    assert f"run `{target.predictor_file.command}`" in caplog.text
    with pytest.raises(InputError, match="this version has another"):
        load_shipped(other)


def test_the_fingerprint_of_code_ignores_comments_and_docstrings() -> None:
    code = "class A:\n    x = 1\n    def f(self): return self.x\n"
    prose = '"Module."\nclass A:\n    "Class."\n    x = 1  # a comment\n    "Attribute."\n\n    def f(self):\n'
    prose += '        "Function."\n        return self.x\n'
    assert syntax(code) == syntax(prose)
    assert syntax(code) != syntax(code.replace("x = 1", "x = 2"))
    assert syntax(code) != syntax(code.replace("x = 1", "x = None"))
    assert syntax("f(x)") != syntax("f(*x)")
    assert syntax("def f(): pass") == ("Module(body=[FunctionDef(args=arguments() body=[Pass()] name='f')])"), (
        "type_params, which Python 3.12 adds, is left out"
    )
