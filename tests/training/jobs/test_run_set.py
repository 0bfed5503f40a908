"""Training set of the predictor of training jobs."""

import pandas as pd
import pytest

from roofcast.data.errors import InputError
from roofcast.data.job_campaigns import job_catalog, load_job_campaigns
from roofcast.data.measurements.job_validation import training_row_ids, validate_training_measurements
from roofcast.training.jobs.run_set import NO_METRIC, UNKNOWN_NAME, build_run_set
from tests.data.row_builders import a_training_row

SHIPPED = load_job_campaigns(["torchtune"])


def runs(*changes: dict[str, object]) -> pd.DataFrame:
    return validate_training_measurements(pd.DataFrame([a_training_row(**change) for change in changes]))


def test_own_runs_come_first_with_the_owner_that_stored_them() -> None:
    own = runs({"stack": "famous/lab"}, {"n_accelerator": 16, "campaign": "famous"})
    data = build_run_set(SHIPPED, own, pd.Series(["", "ci"]), job_catalog())
    assert data.rows.owners[:2].tolist() == ["", "key:ci"]
    assert data.rows.measurements["stack"][1] == "key:ci/famous"
    assert data.ids[:2].tolist() == training_row_ids(own)
    assert set(data.rows.owners[2:]) == {"pytorch"}


def test_a_shipped_run_of_the_store_counts_once() -> None:
    data = build_run_set(SHIPPED, SHIPPED.head(3), pd.Series([""] * 3), job_catalog())
    alone = build_run_set(SHIPPED, SHIPPED.iloc[:0], pd.Series(dtype=object), job_catalog())
    assert data.digest == alone.digest
    assert data.set_aside == alone.set_aside


def test_runs_without_a_name_or_a_metric_are_set_aside() -> None:
    own = runs({"model": "gone/model"}, {"n_token_per_sequence": None})
    more, none = pd.concat([own, runs({})], ignore_index=True), SHIPPED.iloc[:0]
    data = build_run_set(none, more, pd.Series([""] * 3), job_catalog())
    assert data.set_aside == {UNKNOWN_NAME: 1, NO_METRIC: 1}
    assert len(data.ids) == 1
    with pytest.raises(InputError, match="none can be used"):
        build_run_set(none, own, pd.Series([""] * 2), job_catalog())


def test_a_key_reports_no_failure() -> None:
    failed = runs({"status": "out_of_memory", "throughput_token_per_s": None, "n_micro_batch_sequence": 1})
    of_key = build_run_set(SHIPPED, failed, pd.Series(["ci"]), job_catalog())
    of_operator = build_run_set(SHIPPED, failed, pd.Series([""]), job_catalog())
    assert len(of_operator.ids) == len(of_key.ids) + 1
