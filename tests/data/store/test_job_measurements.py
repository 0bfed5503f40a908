"""Measurements of training jobs in the store, beside those of inference."""

import pandas as pd
import pytest

from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.measurements.job_validation import validate_training_measurements
from roofcast.data.measurements.target import INFERENCE, TRAINING, Target
from roofcast.data.store.measurement_store import Added, MeasurementStore
from roofcast.data.store.provenance import Origin
from tests.data.row_builders import a_training_row
from tests.data.store.stores import rows

CI = Origin("ci", is_operator=False, import_id="runs")


def runs(*n_accelerator: int, campaign: str = "nightly") -> pd.DataFrame:
    return validate_training_measurements(
        pd.DataFrame([a_training_row(n_accelerator=n, campaign=campaign) for n in n_accelerator])
    )


def test_runs_are_stored_once_and_come_back_as_they_were(store: MeasurementStore) -> None:
    table = runs(8, 16)
    assert store.training.compare(table) == Added(n_new=2, n_known=0)
    assert store.training.add(table, origin=CI) == Added(n_new=2, n_known=0)
    assert store.training.add(runs(16, 32), origin=CI) == Added(n_new=1, n_known=1)
    loaded = store.training.load().sort_values("n_accelerator", ignore_index=True)
    pd.testing.assert_frame_equal(loaded, runs(8, 16, 32))
    assert store.count() == 0
    assert store.training.campaigns() == {"nightly": 3}
    assert store.of(INFERENCE) is store
    assert store.of(TRAINING) is store.training


def test_each_key_has_a_claim_to_a_run(store: MeasurementStore) -> None:
    store.training.add(runs(8), origin=CI)
    assert store.training.add(runs(8), origin=Origin("other", is_operator=False)).n_claimed == 1
    assert store.provenance.change("withdrawal", "key:ci", {"key": "ci"}, only_of="ci").n_row == 1
    assert store.training.load_learnable().uploaders.tolist() == ["other"]


@pytest.mark.parametrize(("target", "n_row"), [(None, 3), (TRAINING, 2), (INFERENCE, 1)])
def test_a_withdrawal_covers_both_targets_unless_it_names_one(
    store: MeasurementStore, target: Target | None, n_row: int
) -> None:
    store.training.add(runs(8, 16), origin=CI)
    store.add(rows(1), origin=Origin("ci", is_operator=False, import_id="loads"))
    assert store.provenance.change("withdrawal", "the operator", {"key": "ci"}, target=target).n_row == n_row
    learnable = len(store.load_learnable().rows), len(store.training.load_learnable().rows)
    assert learnable == (int(target == TRAINING), 2 * int(target == INFERENCE))
    summaries = {one["import_id"]: (one["target"], one["n_withdrawn"]) for one in store.provenance.imports()}
    assert summaries == {
        "runs": (TRAINING, 2 * int(target != INFERENCE)),
        "loads": (INFERENCE, int(target != TRAINING)),
    }
    with pytest.raises(UnknownNameError, match="runs"):
        store.provenance.change("withdrawal", "the operator", {"import_id": "rums"}, target=TRAINING)


def test_a_campaign_or_a_confirmation_of_both_targets_names_its_target(store: MeasurementStore) -> None:
    store.training.add(runs(8, 16), origin=CI)
    store.add(rows(1), origin=Origin("ci", is_operator=False, import_id="loads"))
    change = store.provenance.change
    with pytest.raises(InputError, match="campaign 'nightly' holds measurements of inference and training; name the"):
        change("withdrawal", "the operator", {"campaign": "nightly"})
    with pytest.raises(InputError, match="key 'ci' holds measurements of inference and training; name the target"):
        change("confirmation", "the operator", {"key": "ci"})
    assert (len(store.load_learnable().rows), len(store.training.load_learnable().rows)) == (1, 2)
    assert change("withdrawal", "the operator", {"campaign": "nightly"}, target=INFERENCE).n_row == 1
    assert change("withdrawal", "the operator", {"import_id": "runs"}).n_row == 2


def test_a_run_in_quarantine_waits_for_its_confirmation(store: MeasurementStore) -> None:
    added = store.training.add(runs(8, 16), origin=CI, quarantine=pd.Series(["too slow", ""]))
    assert (added.n_new, added.n_quarantined) == (2, 1)
    assert store.training.load_learnable().rows["n_accelerator"].tolist() == [16]
    assert store.provenance.change("confirmation", "key:ci", {"import_id": "runs"}, only_of="ci").n_row == 1
    assert len(store.training.load_learnable().rows) == 2


def test_a_retraining_keeps_its_target(store: MeasurementStore) -> None:
    record = store.retrainings.add("home", TRAINING)
    assert store.retrainings.find(record.id).target == TRAINING
    assert store.retrainings.add("home").target == INFERENCE
