import numpy as np
import pandas as pd
import pytest

from roofcast.features.pipeline import METRICS
from roofcast.training.dataset.targets import log_ratio, outcomes, row_weights
from tests.training.builders import measurements

NAN = float("nan")


def test_log_ratio_is_undone_by_its_exponential() -> None:
    measured, estimate = np.array([3.0, 0.2]), np.array([1.5, 4.0])
    np.testing.assert_allclose(estimate * np.exp(log_ratio(measured, estimate)), measured)


@pytest.mark.parametrize("measured", [NAN, 0.0])
def test_nothing_measured_has_no_ratio(measured: float) -> None:
    assert np.isnan(log_ratio(np.array([measured]), np.ones(1))).all()


def test_outcomes_of_failed_runs_are_left_out() -> None:
    table = outcomes(measurements({"ttft_s": 0.5}, {"ttft_s": 0.7, "status": "failed"}))
    assert tuple(table.columns) == METRICS
    np.testing.assert_array_equal(table["ttft_s"], [0.5, NAN])
    assert table["itl_s"].isna().all()


def test_derived_outcomes_are_left_out() -> None:
    told = {"ttft_s": 0.5, "tpot_s": 0.02, "e2e_s": 4.0}
    table = outcomes(measurements(told, told | {"derived": "tpot_s e2e_s"}, told | {"derived": "ttft_s"}))
    np.testing.assert_array_equal(table["ttft_s"], [0.5, 0.5, NAN])
    np.testing.assert_array_equal(table["tpot_s"], [0.02, NAN, 0.02])
    np.testing.assert_array_equal(table["e2e_s"], [4.0, NAN, 4.0])


def test_the_rate_of_a_static_batch_is_its_time_told_otherwise() -> None:
    told = {"e2e_s": 4.0, "output_throughput_token_per_s": 800.0, "statistic": "mean"}
    told |= {"derived": "output_throughput_token_per_s"}
    table = outcomes(measurements(told, told | {"load": "static_batch"}))
    np.testing.assert_array_equal(table["output_throughput_token_per_s"], [NAN, 800.0])


def test_the_name_of_a_metric_within_another_is_not_that_metric() -> None:
    table = outcomes(measurements({"ttft_s": 0.5, "nttft_s_per_token": 1e-3, "derived": "nttft_s_per_token"}))
    assert table["ttft_s"].tolist() == [0.5]
    assert table["nttft_s_per_token"].isna().all()


def test_weights_have_mean_one_and_groups_grow_with_the_root_of_their_rows() -> None:
    weight = row_weights(pd.Series(["a"] * 4 + ["b"] * 16))
    assert weight.mean() == pytest.approx(1.0)
    assert weight[4:].sum() / weight[:4].sum() == pytest.approx(2.0)
