from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

import roofcast.training
from roofcast.data.errors import InputError
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.lifecycle.bundle import ModelBundle, _load_pyfunc, load_bundle, sha256
from tests.training.builders import a_bundle


@pytest.fixture(scope="module")
def bundle(subset: TrainingSet) -> ModelBundle:
    return a_bundle(subset)


def test_a_bundle_comes_back_as_it_went(bundle: ModelBundle, subset: TrainingSet, tmp_path: Path) -> None:
    path = tmp_path / "bundle.joblib"
    checksum = bundle.save(path)
    loaded = load_bundle(path, checksum)
    assert checksum == sha256(path)
    assert (loaded.fingerprint, loaded.row_ids, loaded.scores) == (bundle.fingerprint, bundle.row_ids, bundle.scores)
    pd.testing.assert_frame_equal(loaded.predictor.predict(subset.X), bundle.predictor.predict(subset.X))
    assert loaded.predictor.highest_level == bundle.predictor.highest_level


def test_the_same_bundle_has_the_same_checksum(bundle: ModelBundle, tmp_path: Path) -> None:
    assert bundle.save(tmp_path / "a") == bundle.save(tmp_path / "b")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"bundle: no file gone\.joblib; retrain to make one"):
        load_bundle(tmp_path / "gone.joblib", "")


@pytest.mark.parametrize("n_byte", [0, 100, -1])
def test_a_cut_file_is_not_even_read(n_byte: int, bundle: ModelBundle, tmp_path: Path) -> None:
    path = tmp_path / "bundle.joblib"
    checksum = bundle.save(path)
    path.write_bytes(path.read_bytes()[:n_byte])
    with pytest.raises(InputError, match="does not have the registered checksum"):
        load_bundle(path, checksum)


@pytest.mark.parametrize("n_byte", [0, 100, -1000])
def test_a_cut_file_with_a_fitting_checksum_is_refused_too(n_byte: int, bundle: ModelBundle, tmp_path: Path) -> None:
    path = tmp_path / "bundle.joblib"
    bundle.save(path)
    path.write_bytes(path.read_bytes()[:n_byte])
    with pytest.raises(InputError, match=r"bundle\.joblib cannot be read"):
        load_bundle(path, sha256(path))


def test_what_is_no_joblib_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bundle.joblib"
    path.write_text("{}")
    with pytest.raises(InputError, match="cannot be read"):
        load_bundle(path, sha256(path))


class _OfBefore:
    """Is written as a bundle that lacks its last part."""

    def __init__(self, bundle: ModelBundle) -> None:
        self.parts = [getattr(bundle, part.name) for part in fields(bundle)][:-1]

    def __reduce__(self) -> tuple[object, tuple[object, ...], list[object]]:
        return object.__new__, (ModelBundle,), self.parts


class _Gone:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _refuse, ("no module named roofcast.training.before",)


def _refuse(text: str) -> None:
    raise ModuleNotFoundError(text)


def test_a_bundle_of_classes_that_are_gone_says_retrain(tmp_path: Path) -> None:
    path = tmp_path / "bundle.joblib"
    joblib.dump(_Gone(), path)
    with pytest.raises(InputError, match=r"ModuleNotFoundError: no module named roofcast\.training\.before.*retrain"):
        load_bundle(path, sha256(path))


@pytest.mark.parametrize(
    ("content", "kind"), [({}, "dict"), ([1], "list"), (np.ones(3), "ndarray"), (None, "NoneType")]
)
def test_other_content_is_refused_by_its_type(content: object, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "bundle.joblib"
    joblib.dump(content, path)
    with pytest.raises(InputError, match=f"holds a {kind}, not a ModelBundle"):
        load_bundle(path, sha256(path))


def test_other_columns_are_refused(bundle: ModelBundle, tmp_path: Path) -> None:
    path = tmp_path / "bundle.joblib"
    checksum = replace(bundle, fingerprint="0" * 16, roofcast_version="0.0.1").save(path)
    with pytest.raises(InputError, match=r"made by roofcast 0\.0\.1 of layout 0{16}, this version has .*; retrain"):
        load_bundle(path, checksum)


def test_mlflow_loads_the_bundle_of_a_folder(bundle: ModelBundle, subset: TrainingSet, tmp_path: Path) -> None:
    bundle.save(tmp_path / "bundle.joblib")
    served = _load_pyfunc(str(tmp_path)).predict(subset.X)
    pd.testing.assert_frame_equal(served, bundle.predictor.predict(subset.X))


def test_mlflow_loads_no_bundle_that_was_damaged(bundle: ModelBundle, tmp_path: Path) -> None:
    file = tmp_path / "bundle.joblib"
    bundle.save(file)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(InputError, match="checksum"):
        _load_pyfunc(str(tmp_path))
    (tmp_path / "bundle.joblib.sha256").unlink()
    with pytest.raises(InputError, match=r"no file bundle\.joblib\.sha256; retrain"):
        _load_pyfunc(str(tmp_path))


def test_what_others_embed_is_importable_without_mlflow_or_a_server() -> None:
    code = (
        "import sys, roofcast.training as t; assert 'pandas' not in sys.modules; [getattr(t, n) for n in t.__all__]; "
        "sys.exit(bool({'mlflow', 'fastapi'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603
    with pytest.raises(AttributeError, match="has no attribute 'Predictor'"):
        _ = roofcast.training.Predictor


def test_a_bundle_of_fewer_parts_is_refused(bundle: ModelBundle, tmp_path: Path) -> None:
    path, old = tmp_path / "bundle.joblib", replace(bundle)
    joblib.dump(_OfBefore(old), path)
    with pytest.raises(InputError, match="made by another version of roofcast"):
        load_bundle(path, sha256(path))
