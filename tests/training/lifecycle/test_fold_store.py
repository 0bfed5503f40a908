"""Folds that an interrupted retraining does not fit again."""

import pickle
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner import ratio_model
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.learner.ratio_model import Progress
from roofcast.training.lifecycle import fold_store
from roofcast.training.lifecycle.bundles.bundle_key import BundleKey
from roofcast.training.lifecycle.fold_store import keep_folds
from tests.training.builders import QUICK


def fit(data: TrainingSet, progress: Progress | None = None, config: TrainingConfig = QUICK) -> RoofcastPredictor:
    return RoofcastPredictor(config, ("ttft_s", "tpot_s")).fit(
        data.X, data.y, data.groups, progress, stacks=data.stacks
    )


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list of the numbers of training rows of folds that are fitted from now on."""
    calls: list[int] = []
    fit_fold: Callable[..., Any] = ratio_model._fit_fold

    def count(*arguments: Any, **tables: Any) -> Any:
        calls.append(len(tables["rows"]))
        return fit_fold(*arguments, **tables)

    monkeypatch.setattr(ratio_model, "_fit_fold", count)
    return calls


@pytest.fixture
def key(tmp_path_factory: pytest.TempPathFactory) -> BundleKey:
    return BundleKey(tmp_path_factory.mktemp("state") / "bundle.key")


class InterruptedFitError(Exception):
    """The process ended."""


def interrupt_after(n_fold: int) -> Progress:
    def progress(folds: Iterable[Any], _total: int, _label: str) -> Iterator[Any]:
        for n_done, fold in enumerate(folds, start=1):
            yield fold
            if n_done == n_fold:
                raise InterruptedFitError

    return progress


def test_an_interrupted_fit_goes_on(subset: TrainingSet, tmp_path: Path, key: BundleKey, fitted: list[int]) -> None:
    alone = fit(subset)
    n_fold = len(fitted)
    with keep_folds(tmp_path / "folds", key), pytest.raises(InterruptedFitError):
        fit(subset, interrupt_after(2))
    assert len(list((tmp_path / "folds").glob("*.fold"))) == 2
    fitted.clear()
    with keep_folds(tmp_path / "folds", key):
        resumed = fit(subset)
    assert len(fitted) == n_fold - 2
    fitted.clear()
    with keep_folds(tmp_path / "folds", key):
        again = fit(subset)
    assert fitted == []
    for other in (resumed, again):
        pd.testing.assert_frame_equal(other.held_out_, alone.held_out_, check_exact=True)
        pd.testing.assert_frame_equal(other.stack_held_out_, alone.stack_held_out_, check_exact=True)
        pd.testing.assert_frame_equal(other.predict(subset.X), alone.predict(subset.X), check_exact=True)
    fit(subset)
    assert len(fitted) == n_fold  # nothing is read outside the block


@pytest.mark.parametrize("change", ["measurement", "descriptor", "settings", "code"])
def test_a_fold_of_something_else_is_not_read(  # noqa: PLR0917  (fixtures)
    change: str,
    subset: TrainingSet,
    tmp_path: Path,
    key: BundleKey,
    fitted: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with keep_folds(tmp_path, key):
        fit(subset)
    n_fold, config = len(fitted), QUICK
    fitted.clear()
    match change:
        case "measurement":
            subset = replace(subset, y=subset.y.assign(tpot_s=subset.y["tpot_s"] * 1.0000001))
        case "descriptor":
            subset = replace(subset, X=subset.X.assign(**{subset.X.columns[0]: subset.X.iloc[:, 0] + 1}))
        case "settings":
            config = QUICK.model_copy(update={"seed": QUICK.seed + 1})
        case "code":
            monkeypatch.setattr(fold_store, "environment", lambda: {"code": "another"})
    with keep_folds(tmp_path, key):
        fit(subset, config=config)
    assert len(fitted) == n_fold


def test_a_damaged_fold_is_fitted_again_and_runs_no_code(
    subset: TrainingSet, tmp_path: Path, key: BundleKey, fitted: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    class Attack:
        def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
            return Path.mkdir, (tmp_path / "executed",)  # type: ignore[return-value]

    folder = tmp_path / "folds"
    with keep_folds(folder, key):
        expected = fit(subset)
    n_fold = len(fitted)
    fitted.clear()
    first, second, *_ = sorted(folder.glob("*.fold"))
    first.write_bytes(first.read_bytes()[:1000])
    second.write_bytes(pickle.dumps(Attack()))
    with keep_folds(folder, key):
        found = fit(subset)
    assert len(fitted) == 2 < n_fold
    assert caplog.text.count("a stored fold cannot be read; it is fitted again") == 2
    assert not (tmp_path / "executed").exists()
    pd.testing.assert_frame_equal(found.held_out_, expected.held_out_, check_exact=True)


@pytest.mark.parametrize("forgery", ["fold of another name", "another key", "no signature"])
def test_a_fold_that_this_state_folder_has_not_signed_is_not_read(
    forgery: str, subset: TrainingSet, tmp_path: Path, key: BundleKey, fitted: list[int]
) -> None:
    """Whoever chooses the held-out predictions chooses the candidate that is promoted."""
    with keep_folds(tmp_path, key):
        expected = fit(subset)
    fitted.clear()
    first, second, *others = sorted(tmp_path.glob("*.fold"))
    match forgery:
        case "fold of another name":
            for suffix in (".fold", ".signature"):
                shutil.copy(first.with_suffix(suffix), second.with_suffix(suffix))
            n_forged = 1
        case "another key":
            key, n_forged = BundleKey(tmp_path / "other.key"), 2 + len(others)
        case _:
            first.with_suffix(".signature").unlink()
            n_forged = 1
    with keep_folds(tmp_path, key):
        found = fit(subset)
    assert len(fitted) == n_forged
    pd.testing.assert_frame_equal(found.held_out_, expected.held_out_, check_exact=True)


def test_a_folder_that_cannot_be_written_costs_the_resumption_alone(
    subset: TrainingSet, tmp_path: Path, key: BundleKey, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "folds").write_text("a file")
    with keep_folds(tmp_path / "folds", key):
        assert fit(subset).metrics_
    assert "a fold is not stored" in caplog.text
