"""Intervals of metrics that follow from TTFT and TPOT are as wide as these make them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from roofcast.training.learner.derived_metrics import SOURCES, derived_scores
from roofcast.training.learner.predictor import CalibrationPoints, Prediction, RoofcastPredictor

THROUGHPUT = "output_throughput_token_per_s"
LEVEL = 0.8


def sd(answer: Prediction, metric: str) -> np.ndarray:
    return answer.log_sd[metric].to_numpy()


def asked_at(X: pd.DataFrame, quantile: float) -> pd.DataFrame:
    return X.assign(**{"workload.is_mean": 0.0, "workload.quantile": quantile})


def test_a_request_is_as_uncertain_as_its_parts(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    answer = quick.predict_distribution(means)
    whole, loop, ttft, tpot = (sd(answer, m) for m in ("e2e_s", THROUGHPUT, *SOURCES))
    np.testing.assert_allclose(whole, loop, rtol=1e-9)
    assert (whole <= np.hypot(ttft, tpot) + 1e-12).all()
    assert (whole >= np.minimum(ttft, tpot) / np.sqrt(2) - 1e-12).all()


def test_a_long_answer_is_as_uncertain_as_its_tokens(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    sizes = {"workload.n_input_token": 16.0, "workload.n_output_token": 4000.0, "workload.concurrency": 1.0}
    long = means.head(5).assign(**sizes)
    answer = quick.predict_distribution(long)
    np.testing.assert_allclose(sd(answer, "e2e_s"), sd(answer, "tpot_s"), rtol=0.02)


def test_throughput_is_of_the_run_whatever_percentile_is_asked(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    mean, tail = (quick.predict_distribution(X) for X in (asked_at(means, 0.5), asked_at(means, 0.99)))
    first, second = (sd(answer, THROUGHPUT) for answer in (mean, tail))
    np.testing.assert_allclose(first, second, rtol=1e-6)


def test_what_is_told_of_the_parts_tells_of_the_whole(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    one = means.head(1)
    plain = quick.predict_distribution(one)
    told = quick.predict_distribution(one, CalibrationPoints(one, plain.median[[*SOURCES]]))
    for metric in ("e2e_s", THROUGHPUT):
        narrower, wider = (sd(a, metric)[0] for a in (told, plain))
        assert narrower < 0.9 * wider


def test_the_promise_is_made_of_the_errors_of_the_parts(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    parts = quick.predict_ratio(means)
    n = len(means)
    errors = {"ttft_s": np.full(n, 0.3), "tpot_s": np.full(n, 0.3), "e2e_s": np.full(n, 5.0)}
    same = dict.fromkeys(errors, np.full(n, 0.1))
    scores = derived_scores(parts.shares(), parts.loads, errors, same)
    assert list(scores) == ["e2e_s"]
    assert (scores["e2e_s"] >= 3 - 1e-9).all()
    assert (scores["e2e_s"] <= 3 * np.sqrt(2) + 1e-9).all()
    without = errors | {"tpot_s": np.full(n, np.nan)}
    assert np.isnan(derived_scores(parts.shares(), parts.loads, without, same)["e2e_s"]).all()
