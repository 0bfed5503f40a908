import numpy as np
import pandas as pd
import pytest

from research.importance import gain_importance, permutation_shifts
from roofcast.features.columns import FEATURE_NAMES
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.examples import example_descriptors
from roofcast.features.pipeline import METRICS, build_features
from roofcast.training.config import TrainingConfig
from roofcast.training.learner.ratio_model import RatioModel

N_ROW = 120
SIGNAL, NOISE = "config.flash_attention", "config.date"
"""Columns independent of all others: noise is in no formula, signal multiplies the measurements below by e."""


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(example_descriptors()).loc[[0] * N_ROW].reset_index(drop=True)
    X["workload.n_input_token"] = rng.integers(100, 2000, N_ROW).astype(float)
    X["workload.concurrency"] = rng.integers(1, 32, N_ROW).astype(float)
    X[SIGNAL], X[NOISE] = rng.integers(0, 2, (2, N_ROW)).astype(float)
    return X


@pytest.fixture(scope="module")
def predictor(rows: pd.DataFrame) -> RatioModel:
    estimates = pd.DataFrame(build_features(rows, DEFAULT_COEFFICIENTS)[1])
    y = estimates.mul(np.exp(rows[SIGNAL]), axis=0)
    y = y.assign(**{m: np.nan for m in METRICS if m not in {"ttft_s", "tpot_s"}})
    groups = pd.Series(np.repeat(list("abcd"), N_ROW // 4))
    config = TrainingConfig(n_estimators=40, max_depth=3, learning_rate=0.2, colsample_bytree=1.0)
    return RatioModel(config, coefficients=DEFAULT_COEFFICIENTS).fit(rows, y, groups)


def test_gain_shares_sum_to_one_and_rank_the_signal_first_and_noise_last(predictor: RatioModel) -> None:
    gain = gain_importance(predictor.regressors_["ttft_s"])
    assert tuple(gain.index) == FEATURE_NAMES
    assert gain.sum() == pytest.approx(1)
    assert gain.idxmax() == SIGNAL
    assert gain[NOISE] < 0.05


def shift(table: pd.DataFrame, metric: str, block: str, column: str = "prediction") -> float:
    return float(table[column].to_dict()[metric, block])


def test_facts_move_the_prediction_and_noise_does_not(rows: pd.DataFrame, predictor: RatioModel) -> None:
    blocks = {"load": ["workload.n_input_token", "workload.concurrency"], "noise": [NOISE]}
    shifts = permutation_shifts(predictor, rows, blocks)
    for metric in ("ttft_s", "tpot_s"):
        assert shift(shifts, metric, "load") > max(0.05, 5 * shift(shifts, metric, "load", "correction"))
        assert shift(shifts, metric, "noise") < 0.01
