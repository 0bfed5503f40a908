"""Intervals of metrics that follow from TTFT and TPOT are as wide as these make them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from roofcast.training.learner.derived_metrics import scores_of_followers
from roofcast.training.learner.predictor import Prediction, References, RoofcastPredictor
from roofcast.training.learner.reconciliation import SOURCES

THROUGHPUT = "output_throughput_token_per_s"
LEVEL = 0.8


def sd(predictor: RoofcastPredictor, answer: Prediction, metric: str) -> np.ndarray:
    half = np.log(answer.high[metric].to_numpy() / answer.value[metric].to_numpy())
    return np.asarray(half / predictor.uncertainty_[metric].conformal.quantile(answer.level))


def asked_at(X: pd.DataFrame, quantile: float) -> pd.DataFrame:
    return X.assign(**{"workload.is_mean": 0.0, "workload.quantile": quantile})


def test_a_request_is_as_uncertain_as_its_parts(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    answer = quick.predict_interval(means, LEVEL)
    whole, loop, ttft, tpot = (sd(quick, answer, m) for m in ("e2e_s", THROUGHPUT, *SOURCES))
    np.testing.assert_allclose(whole, loop, rtol=1e-9)
    assert (whole <= np.hypot(ttft, tpot) + 1e-12).all()
    assert (whole >= np.minimum(ttft, tpot) / np.sqrt(2) - 1e-12).all()


def test_a_long_answer_is_as_uncertain_as_its_tokens(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    sizes = {"workload.n_input_token": 16.0, "workload.n_output_token": 4000.0, "workload.concurrency": 1.0}
    long = means.head(5).assign(**sizes)
    answer = quick.predict_interval(long, LEVEL)
    np.testing.assert_allclose(sd(quick, answer, "e2e_s"), sd(quick, answer, "tpot_s"), rtol=0.02)


def test_throughput_is_of_the_run_whatever_percentile_is_asked(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    mean, tail = (quick.predict_interval(X, LEVEL) for X in (asked_at(means, 0.5), asked_at(means, 0.99)))
    first, second = (answer.high[THROUGHPUT] / answer.low[THROUGHPUT] for answer in (mean, tail))
    np.testing.assert_allclose(first, second, rtol=1e-6)


def test_what_is_told_of_the_parts_tells_of_the_whole(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    one = means.head(1)
    plain = quick.predict_interval(one, LEVEL)
    told = quick.predict_interval(one, LEVEL, References(one, plain.value[[*SOURCES]]))
    for metric in ("e2e_s", THROUGHPUT):
        narrower, wider = (np.log(a.high[metric].iloc[0] / a.low[metric].iloc[0]) for a in (told, plain))
        assert narrower < 0.9 * wider


def test_the_promise_is_made_of_the_errors_of_the_parts(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    parts = quick.predict_columns(means)
    n = len(means)
    errors = {"ttft_s": np.full(n, 0.3), "tpot_s": np.full(n, 0.3), "e2e_s": np.full(n, 5.0)}
    same = dict.fromkeys(errors, np.full(n, 0.1))
    scores = scores_of_followers(parts, errors, same)
    assert list(scores) == ["e2e_s"]
    assert (scores["e2e_s"] >= 3 - 1e-9).all()
    assert (scores["e2e_s"] <= 3 * np.sqrt(2) + 1e-9).all()
    without = errors | {"tpot_s": np.full(n, np.nan)}
    assert np.isnan(scores_of_followers(parts, without, same)["e2e_s"]).all()
    assert scores_of_followers(parts, {"e2e_s": errors["e2e_s"]}, same) == {}
