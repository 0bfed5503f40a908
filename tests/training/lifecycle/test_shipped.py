from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from roofcast.training.lifecycle import shipped
from roofcast.training.lifecycle.bundles.bundle import layout, load_bundle, sha256
from roofcast.training.lifecycle.retraining import fit_bundle
from roofcast.training.lifecycle.shipped import COMMAND, FILE, read_manifest, shipped_predictor, syntax

STALE = f"the shipped predictor is stale; run `{COMMAND}` and commit what it writes"


def test_the_shipped_predictor_was_fitted_to_the_rows_and_the_catalogue_of_the_package() -> None:
    manifest = read_manifest()
    assert manifest.data == shipped.data_fingerprint(), STALE
    assert manifest.catalog == shipped.catalog_fingerprint(), STALE


def test_the_shipped_predictor_was_fitted_by_the_code_of_the_package() -> None:
    """Covers the syntax trees of `shipped.CODE`; comments, docstrings and formatting do not count."""
    assert read_manifest().code == shipped.code_fingerprint(), STALE


def test_the_shipped_predictor_is_read_as_a_champion() -> None:
    predictor = shipped_predictor()
    assert predictor is not None, STALE
    assert predictor.champion.sha256 == sha256(FILE)
    assert predictor.champion.version == f"shipped-{sha256(FILE)[:8]}"
    assert load_bundle(FILE, sha256(FILE)).fingerprint == layout()


@pytest.mark.slow
def test_a_new_fit_predicts_like_the_shipped_predictor() -> None:
    data = shipped.shipped_training_set()
    rows = data.X.iloc[::100]
    stored, fitted = load_bundle(FILE, sha256(FILE)), fit_bundle(data)
    assert stored.row_ids == fitted.row_ids
    pd.testing.assert_frame_equal(stored.anchors.rows, fitted.anchors.rows, check_dtype=False, rtol=1e-3)
    assert stored.scores.keys() == fitted.scores.keys()
    for metric, scores in stored.scores.items():
        assert fitted.scores[metric] == pytest.approx(scores, rel=1e-3), STALE
    one, other = (bundle.predictor.predict_distribution(rows) for bundle in (stored, fitted))
    for old, new in zip((one.median, *one.interval(0.9)), (other.median, *other.interval(0.9)), strict=True):
        np.testing.assert_allclose(old, new, rtol=1e-3, err_msg=STALE)


@pytest.mark.parametrize("text", ["", "{}", '{"sha256": "0"}', None])
def test_a_source_tree_without_a_valid_manifest_has_no_shipped_predictor(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    manifest = tmp_path / "predictor.json"
    if text is not None:
        manifest.write_text(text)
    monkeypatch.setattr(shipped, "MANIFEST", manifest)
    assert shipped_predictor() is None
    assert f"run `{COMMAND}`" in caplog.text


def test_a_shipped_predictor_of_another_layout_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shipped, "layout", lambda: "another")
    assert shipped_predictor() is None
    assert f"run `{COMMAND}`" in caplog.text


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
    assert shipped.code_fingerprint() == shipped.code_fingerprint()
