"""Retraining with a real store: three retrainings that the tests share."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow.entities import Run

from roofcast.data.errors import InputError, NotReadyError
from roofcast.features.columns import DESCRIPTOR_NAMES
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.lifecycle.gate.challenger_alias import challenger_of
from roofcast.training.lifecycle.inference_learner import fit_bundle, score_folds
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET
from roofcast.training.lifecycle.registry.mlflow_store import URI_VARIABLE
from roofcast.training.lifecycle.registry.registry import (
    CHECKSUM_TAG,
    MODEL_NAME,
    Champion,
    Registry,
    ShippedPredictor,
)
from roofcast.training.lifecycle.registry.tracking import error_metrics
from roofcast.training.lifecycle.retraining import RetrainingReport, retrain
from tests.training.builders import LINEAGES, QUICK, QUIET
from tests.training.lifecycle.registry.versions import champion_of, version_of

pytestmark = pytest.mark.filterwarnings("ignore:Operation with range:pandas.errors.Pandas4Warning")

WORSE = TrainingConfig(n_member=1, n_estimators=1, calibrate=False)


@dataclass(frozen=True)
class History:
    registry: Registry
    first: RetrainingReport
    again: RetrainingReport
    worse: RetrainingReport
    champion: str
    run: Run
    folder: Path


@pytest.fixture(scope="module")
def history(subset: TrainingSet, empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> History:
    home = tmp_path_factory.mktemp("history")
    shutil.copy(empty_store, home)
    registry = Registry(home)
    first = retrain(QUIET, subset, registry, QUICK)
    again = retrain(INFERENCE_TARGET, subset, registry, QUICK)
    worse = retrain(QUIET, subset, registry, WORSE)
    champion = champion_of(registry)
    run = registry._client.get_run(champion.run_id)
    folder = Path(mlflow.artifacts.download_artifacts(run.info.artifact_uri, tracking_uri=registry.tracking_uri))
    return History(registry, first, again, worse, champion.version, run, folder)


def test_the_first_predictor_is_promoted(history: History) -> None:
    assert (history.first.version, history.first.promoted) == ("1", True)
    assert history.first.champion_error is None
    assert history.first.reason == "there was no champion"
    assert history.first.n_group == 3


def test_a_second_fit_with_equal_settings_and_data_is_promoted(history: History) -> None:
    assert history.again.promoted
    assert history.again.candidate_error == history.again.champion_error == history.first.candidate_error


class UndescribedRegistry(Registry):
    """A registry whose server goes down after the promotion."""

    def describe(self, version: str, description: str) -> None:
        assert (champion_of(self).version, bool(description)) == (version, True)
        raise NotReadyError("MLflow is down")


def test_a_promotion_needs_no_description(subset: TrainingSet, home: Path, caplog: pytest.LogCaptureFixture) -> None:
    report = retrain(QUIET, subset, UndescribedRegistry(home), WORSE)
    assert report.promoted
    assert f"version {report.version} has no description" in caplog.text


def test_a_worse_predictor_is_registered_and_not_promoted(history: History) -> None:
    assert not history.worse.promoted
    assert history.worse.champion_error is not None
    assert history.worse.candidate_error > history.worse.champion_error
    assert [c.version for c in history.registry.versions()] == ["3", "2", "1"]
    assert history.champion == "2"


@pytest.mark.slow
def test_a_candidate_in_shadow_answers_beside_the_champion(subset: TrainingSet, home: Path) -> None:
    registry = Registry(home)
    first, second = (retrain(QUIET, subset, registry, WORSE, shadow=True) for _ in range(2))
    assert (first.promoted, first.is_challenger) == (True, False)
    assert (second.promoted, second.is_challenger) == (False, True)
    assert second.reason.startswith("it answers beside the champion; judgement: held-out error ")
    assert (version_of(registry.champion()), version_of(challenger_of(registry))) == ("1", "2")


def test_reports_have_scores_by_metric(history: History) -> None:
    assert set(history.first.scores) == {"ttft_s", "nttft_s_per_token", "itl_s", "tpot_s", "e2e_s"}
    assert set(history.first.scores["ttft_s"]) == {"mape", "median_ape", "within_25"}


def test_the_run_holds_settings_and_data(history: History, subset: TrainingSet) -> None:
    params = history.run.data.params
    assert params["n_estimators"] == "20"
    assert set(params) == {*TrainingConfig.model_fields, "n_row", "n_own_row", "n_group"}
    assert params["n_row"] == str(len(subset.X))
    assert history.run.data.tags["data_digest"] == subset.digest


def test_the_run_holds_an_error_per_fold_and_metric(history: History) -> None:
    metrics = history.run.data.metrics
    for lineage in LINEAGES:
        assert metrics[f"lineage.{lineage}.ttft_s.mape"] > 0
    assert metrics["ttft_s.mape"] == pytest.approx(np.mean([metrics[f"lineage.{n}.ttft_s.mape"] for n in LINEAGES]))


def test_the_run_holds_a_plot_per_metric_and_two_more(history: History) -> None:
    names = {path.stem for path in (history.folder / "plots").glob("*.png")}
    assert names == {*history.first.scores, "coverage", "coefficients"}


def test_the_run_holds_every_held_out_prediction(history: History, subset: TrainingSet) -> None:
    table = pd.read_csv(history.folder / "tables" / "held_out.csv")
    assert table["id"].tolist() == subset.ids.tolist()
    assert table["predicted.ttft_s"].notna().all()
    assert len(pd.read_csv(history.folder / "tables" / "errors.csv")) == 3 * 5


def test_a_version_has_a_description_for_people(history: History, subset: TrainingSet) -> None:
    worse, again, _ = (one.description for one in history.registry.versions())
    n_row = len(subset.X)
    assert f"from {n_row:,} measurements of 3 lineages: {n_row:,} of 1 shipped campaigns, 0 imported." in again
    assert f"Mean absolute log error {history.again.candidate_error:.4f}, that of version 1 " in again
    assert f"Promoted: {history.again.reason}." in again
    assert f"Not promoted: {history.worse.reason}." in worse
    assert history.run.data.tags["mlflow.note.content"] == again


def test_errors_of_stacks_are_logged_where_they_are_known(subset: TrainingSet) -> None:
    owners = pd.Series(["one"] * 10 + ["other"] * (len(subset.X) - 10), index=subset.X.index)
    held_out = subset.y.where(owners == "one")
    scores = score_folds(subset, held_out, owners)
    assert set(scores["group"]) == {"one"}
    assert error_metrics(scores.assign(held_out="owner"))["owner.one.ttft_s.mape"] == 0
    assert score_folds(subset, held_out * np.nan, owners).empty


def test_rows_of_api_keys_move_no_published_error(subset: TrainingSet) -> None:
    is_uploaded = np.arange(len(subset.X)) % 2 == 0
    poisoned = replace(subset, stacks=subset.stacks.mask(is_uploaded, "key:ci/nightly"))
    held_out = subset.y.mul(np.where(is_uploaded, 10.0, 1.0), axis=0)
    folds = score_folds(poisoned, held_out)
    assert set(folds["group"]) == set(subset.groups)
    assert (folds["mape"] == 0).all()


def test_mlflow_serves_the_bundle(history: History, subset: TrainingSet, monkeypatch: pytest.MonkeyPatch) -> None:
    champion = champion_of(history.registry)
    uri = history.registry._client.get_model_version_download_uri("roofcast", champion.version)
    monkeypatch.setenv(URI_VARIABLE, history.registry.tracking_uri)  # put back afterwards, as MLflow sets it too
    mlflow.set_tracking_uri(history.registry.tracking_uri)
    served_model = mlflow.pyfunc.load_model(uri)
    assert served_model.metadata.signature.inputs.input_names() == list(DESCRIPTOR_NAMES)
    assert served_model.input_example is not None
    assert len(served_model.input_example) == 3
    expected = history.registry.load(champion).predictor.predict(subset.X)
    pd.testing.assert_frame_equal(served_model.predict(subset.X), expected)


def test_a_bundle_has_the_identity_of_its_training_data(subset: TrainingSet) -> None:
    bundle = fit_bundle(subset, QUICK)
    assert bundle.row_ids == tuple(subset.ids)
    assert bundle.data_digest == subset.digest
    assert bundle.engines == tuple(sorted(set(subset.measurements["engine"])))


def test_measurements_of_one_lineage_are_refused(subset: TrainingSet) -> None:
    one_lineage = subset.take((subset.groups == LINEAGES[0]).to_numpy())
    with pytest.raises(InputError, match="must span two LLM lineages at least, got one"):
        fit_bundle(one_lineage, QUICK)


def test_a_gap_of_zero_has_no_percentage_error(subset: TrainingSet) -> None:
    data = replace(subset, y=subset.y.assign(tpot_s=0.0))
    folds = score_folds(data, data.y + 1)
    assert set(folds["metric"]) == {"ttft_s", "nttft_s_per_token", "itl_s", "e2e_s"}


@pytest.mark.parametrize("group", ["a+b", "größe (7b)", "a/../b", "a@b,c"])
def test_any_lineage_name_becomes_a_metric_of_mlflow(group: str, home: Path) -> None:
    errors = pd.DataFrame({"held_out": ["lineage"], "group": [group], "metric": ["ttft_s"], "mape": [0.5]})
    with Registry(home).run("a test"):
        mlflow.log_metrics(error_metrics(errors))


def test_a_champion_fitted_to_other_rows_is_replaced(
    history: History, subset: TrainingSet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry = _copy(history, tmp_path)
    other_rows = replace(subset, ids="x" + subset.ids)
    with caplog.at_level(logging.INFO, "roofcast.audit"):
        report = retrain(QUIET, other_rows, registry, WORSE)
    assert report.promoted
    assert "promotion caller=a retraining version_before=" in caplog.text
    assert report.reason == "the champion predicts no measured value"


@pytest.mark.slow
def test_a_champion_that_cannot_be_read_is_replaced(history: History, subset: TrainingSet, tmp_path: Path) -> None:
    registry = _copy(history, tmp_path)
    champion = champion_of(registry)
    registry._client.set_model_version_tag(MODEL_NAME, champion.version, CHECKSUM_TAG, "0" * 64)
    report = retrain(QUIET, subset, registry, WORSE)
    assert report.promoted
    assert report.reason.startswith(f"the champion, version {champion.version}, cannot be used: bundle: ")


@pytest.mark.slow
@pytest.mark.parametrize("is_better", [False, True])
def test_a_champion_promoted_during_the_registration_is_compared_with(
    history: History, subset: TrainingSet, tmp_path: Path, is_better: bool
) -> None:
    registry = _copy(history, tmp_path)
    before, meanwhile = (history.first, history.worse) if is_better else (history.worse, history.again)
    registry.promote(before.version)

    def promote_meanwhile(items: Iterable[Any], total: int | None = None, label: str = "") -> Iterator[Any]:
        del total
        if label == "registration":
            registry.promote(meanwhile.version)
        yield from items

    report = retrain(QUIET, subset, registry, QUICK if is_better else WORSE, promote_meanwhile)
    assert report.promoted is is_better
    assert champion_of(registry).version == (report if is_better else meanwhile).version
    assert report.champion_error == meanwhile.candidate_error


def test_a_rollback_restores_the_answers_to_the_bit(history: History, subset: TrainingSet, tmp_path: Path) -> None:
    registry = _copy(history, tmp_path)
    before = champion_of(registry)
    answers = registry.load(before).predictor.predict(subset.X)
    worse = registry.promote(history.worse.version)
    assert not registry.load(worse).predictor.predict(subset.X).equals(answers)
    restored = registry.rollback()
    assert restored == before
    pd.testing.assert_frame_equal(registry.load(restored).predictor.predict(subset.X), answers, check_exact=True)


def _copy(history: History, home: Path) -> Registry:
    original = history.registry.home
    for name in ("mlflow.db", "bundle.key"):
        shutil.copy(original / name, home)
    for name in ("artifacts", "bundles"):
        shutil.copytree(original / name, home / name)
    return Registry(home)


@pytest.mark.slow
def test_the_first_retraining_is_compared_with_the_shipped_predictor(
    subset: TrainingSet, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = fit_bundle(subset, QUICK)
    checksum = bundle.save(tmp_path / "shipped.roofcast")
    shipped = ShippedPredictor(Champion("shipped-1", "", checksum), tmp_path / "shipped.roofcast")
    registry = Registry(home, shipped=shipped)
    worse = retrain(QUIET, subset, registry, WORSE)
    assert not worse.promoted
    assert registry.champion() == shipped.champion
    monkeypatch.setattr("roofcast.training.lifecycle.gate.inference_trial.predict_held_out", None)
    same = retrain(QUIET, subset, registry, QUICK)
    assert same.promoted
    assert same.candidate_error == same.champion_error
    assert registry.rollback() == shipped.champion
