from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from roofcast.features.coefficients import DEFAULT_COEFFICIENTS, PRIORS
from roofcast.training.calibration import FARTHEST, fit_coefficients
from roofcast.training.dataset import TrainingSet
from tests.training.builders import synthetic

TRUE = replace(
    DEFAULT_COEFFICIENTS, sequence_overhead_s=1e-3, padded_layer_overhead_s=6e-4, weight_bandwidth_ratio=0.65
)
MOVED = ("sequence_overhead_s", "padded_layer_overhead_s", "weight_bandwidth_ratio")


def test_known_coefficients_are_recovered_from_noisy_measurements(campaign: TrainingSet) -> None:
    data = synthetic(campaign, TRUE, noise=0.05)
    fitted = fit_coefficients(data.X, data.y, data.groups)
    for name in MOVED:
        gone = np.log(getattr(fitted, name) / PRIORS[name].median)
        to_go = np.log(getattr(TRUE, name) / PRIORS[name].median)
        assert gone / to_go == pytest.approx(1.0, abs=0.25), name


def test_without_noise_the_priors_stay_where_they_are_true(campaign: TrainingSet) -> None:
    data = synthetic(campaign)
    fitted = fit_coefficients(data.X, data.y, data.groups)
    np.testing.assert_allclose(fitted.log(), DEFAULT_COEFFICIENTS.log(), atol=1e-6)


@pytest.mark.parametrize("n_row", [0, 10])
def test_without_measurements_they_stay_at_their_priors(n_row: int, campaign: TrainingSet) -> None:
    rows = campaign.take(np.arange(len(campaign.X)) < n_row)
    fitted = fit_coefficients(rows.X, rows.y * np.nan, rows.groups)
    np.testing.assert_allclose(fitted.log(), DEFAULT_COEFFICIENTS.log(), atol=1e-6)


def test_tails_are_left_out(campaign: TrainingSet) -> None:
    is_tail = campaign.X["workload.quantile"] > 0.5
    absurd = campaign.y.where(~is_tail, 1e4)
    assert fit_coefficients(campaign.X, absurd, campaign.groups) == fit_coefficients(
        campaign.X, campaign.y, campaign.groups
    )


def test_however_fast_the_measurements_no_share_exceeds_one(subset: TrainingSet) -> None:
    factors = [1e3 if metric == "output_throughput_token_per_s" else 1e-3 for metric in subset.y]
    fitted = asdict(fit_coefficients(subset.X, subset.y * factors, subset.groups))
    for name, prior in PRIORS.items():
        assert abs(np.log(fitted[name] / prior.median)) <= FARTHEST * prior.log_sd * (1 + 1e-9)
        assert not prior.is_share or fitted[name] <= 1 + 1e-9
    assert fitted["weight_bandwidth_ratio"] == pytest.approx(1.0, abs=1e-3)
