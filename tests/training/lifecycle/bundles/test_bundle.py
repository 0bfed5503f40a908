import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import roofcast.training
from roofcast.data.errors import InputError
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.lifecycle.bundles.bundle import ModelBundle, _load_pyfunc, load_bundle
from roofcast.training.lifecycle.bundles.bundle_file import write_object
from roofcast.training.lifecycle.bundles.bundle_io import sha256


def test_a_bundle_survives_a_round_trip(bundle: ModelBundle, subset: TrainingSet, tmp_path: Path) -> None:
    path = tmp_path / "bundle.roofcast"
    checksum = bundle.save(path)
    loaded = load_bundle(path, checksum)
    assert checksum == sha256(path)
    assert (loaded.fingerprint, loaded.row_ids, loaded.scores) == (bundle.fingerprint, bundle.row_ids, bundle.scores)
    pd.testing.assert_frame_equal(loaded.predictor.predict(subset.X), bundle.predictor.predict(subset.X))
    assert loaded.predictor.highest_level() == bundle.predictor.highest_level()


def test_the_same_bundle_has_the_same_checksum(bundle: ModelBundle, tmp_path: Path) -> None:
    assert bundle.save(tmp_path / "a") == bundle.save(tmp_path / "b")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"bundle: no file gone\.roofcast; retrain to make one"):
        load_bundle(tmp_path / "gone.roofcast", "")


@pytest.mark.parametrize("n_byte", [0, 100, -1000, -1])
def test_a_truncated_file_is_refused(n_byte: int, bundle: ModelBundle, tmp_path: Path) -> None:
    path = tmp_path / "bundle.roofcast"
    checksum = bundle.save(path)
    path.write_bytes(path.read_bytes()[:n_byte])
    with pytest.raises(InputError, match="does not have the registered checksum"):
        load_bundle(path, checksum)
    with pytest.raises(InputError, match=r"bundle\.roofcast cannot be read"):
        load_bundle(path, sha256(path))


@pytest.mark.parametrize("content", [{}, [1], np.ones(3), None])
def test_a_file_without_a_bundle_is_refused(content: object, tmp_path: Path) -> None:
    path = tmp_path / "bundle.roofcast"
    write_object(path, content, {}, {"layout": ModelBundle.layout()})
    with pytest.raises(InputError, match=f"holds a {type(content).__name__}, not a ModelBundle"):
        load_bundle(path, sha256(path))


def test_a_bundle_holds_its_lookup_tables_and_no_held_out_predictions(bundle: ModelBundle, tmp_path: Path) -> None:
    loaded = load_bundle(tmp_path / "b", bundle.save(tmp_path / "b"))
    assert vars(loaded.predictor).keys() == vars(bundle.predictor).keys() - {
        "held_out_",
        "stack_held_out_",
        "scores_",
    }
    assert "_tables" in vars(loaded.predictor.error_distributions_["tpot_s"].effects)
    assert bundle.predictor.held_out_ is not None


def test_loading_reads_no_pickle(bundle: ModelBundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checksum = bundle.save(tmp_path / "b")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    assert load_bundle(tmp_path / "b", checksum).row_ids == bundle.row_ids


def test_other_columns_are_refused(bundle: ModelBundle, tmp_path: Path) -> None:
    path = tmp_path / "bundle.roofcast"
    checksum = replace(bundle, fingerprint="0" * 16, roofcast_version="0.0.1").save(path)
    with pytest.raises(InputError, match=r"made by roofcast 0\.0\.1 of layout 0{16}, this version has .*; retrain"):
        load_bundle(path, checksum)


def test_mlflow_refuses_a_damaged_bundle(bundle: ModelBundle, tmp_path: Path) -> None:
    file = tmp_path / "bundle.roofcast"
    bundle.save(file)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(InputError, match="checksum"):
        _load_pyfunc(str(tmp_path))
    (tmp_path / "bundle.roofcast.sha256").unlink()
    with pytest.raises(InputError, match=r"no file bundle\.roofcast\.sha256; retrain"):
        _load_pyfunc(str(tmp_path))


def test_the_public_interface_imports_neither_mlflow_nor_fastapi() -> None:
    code = (
        "import sys, roofcast.training as t; assert 'pandas' not in sys.modules; [getattr(t, n) for n in t.__all__]; "
        "sys.exit(bool({'mlflow', 'fastapi'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603
    with pytest.raises(AttributeError, match="has no attribute 'Predictor'"):
        _ = roofcast.training.Predictor
