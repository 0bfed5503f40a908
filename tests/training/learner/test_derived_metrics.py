"""Derived metrics agree with TTFT and TPOT, and so do their errors."""

import numpy as np
import pandas as pd
import pytest

from roofcast.features.pipeline import build_features
from roofcast.training.learner.derived_metrics import (
    SOURCES,
    Loads,
    derived_scores,
    reconcile,
    source_shares,
)
from roofcast.training.learner.prediction import Prediction
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor

THROUGHPUT = "output_throughput_token_per_s"


def test_a_request_takes_its_first_token_and_the_rest(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    value = quick.predict_distribution(means).median
    n_later = means["workload.n_output_token"] - 1
    _, estimates, whole = build_features(means, quick.coefficients_)
    wanted = value["ttft_s"] + n_later * value["tpot_s"]
    estimated = whole.ttft_s + n_later * whole.tpot_s
    np.testing.assert_allclose(value["e2e_s"] / estimates["e2e_s"], wanted / estimated, rtol=1e-9)


def test_throughput_times_latency_is_what_is_in_flight(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    value = quick.predict_distribution(
        means.assign(**{"workload.n_wave": np.inf, "workload.duration_s": np.inf})
    ).median
    in_flight = means["workload.concurrency"] * means["workload.n_output_token"]
    np.testing.assert_allclose(value[THROUGHPUT] * value["e2e_s"], in_flight, rtol=1e-6)


def test_static_batches_and_offline_runs_have_no_derived_metrics(means: pd.DataFrame) -> None:
    static = means.head(2).assign(**{"workload.is_static": 1.0})
    offline = means.head(2).assign(**{"workload.concurrency": np.nan})
    rate = offline.assign(**{"workload.request_rate_per_s": 1.0})
    for X in (static, offline):
        assert not any(rows.any() for rows in Loads.of(X).is_derived.values())
    assert Loads.of(rate).is_derived["e2e_s"].all()
    assert not Loads.of(rate).is_derived[THROUGHPUT].any()


def test_a_derived_metric_without_sources_has_its_own_error(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    rate = {"workload.concurrency": np.nan, "workload.request_rate_per_s": 0.05}
    X = pd.concat([means.head(2), means.head(2).assign(**rate)], ignore_index=True)
    every, alone = quick.predict_ratio(X), quick.predict_ratio(X)
    alone.mean_correction.clear()
    assert every.is_own("ttft_s").all()
    assert every.is_own("e2e_s").tolist() == [False] * 4
    assert every.is_own(THROUGHPUT).tolist() == [False] * 4
    assert alone.is_own("e2e_s").tolist() == [True] * 4
    assert alone.is_own(THROUGHPUT).tolist() == [True, True, False, False]


def test_the_throughput_of_an_open_loop_is_its_rate(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    endless = {"workload.n_request": np.inf}
    rate = means.assign(**endless, **{"workload.concurrency": np.nan, "workload.request_rate_per_s": 0.05})
    answer = quick.predict_distribution(rate)
    assert not answer.estimate.is_saturated.all()
    wanted = (0.05 * rate["workload.n_output_token"])[~answer.estimate.is_saturated]
    np.testing.assert_allclose(answer.median[THROUGHPUT][~answer.estimate.is_saturated], wanted, rtol=1e-6)
    assert (answer.log_sd[THROUGHPUT] > 0).all(), "a deployment may fall behind"
    points = CalibrationPoints(rate, pd.DataFrame({THROUGHPUT: answer.median[THROUGHPUT] / 2}))
    pd.testing.assert_frame_equal(
        quick.predict_distribution(means, points).median, quick.predict_distribution(means).median
    )


def test_the_shares_of_corrections_sum_to_the_whole(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    _, estimates, whole = build_features(means, quick.coefficients_)
    factor = {"ttft_s": 3.0, "tpot_s": 0.7}
    value = {metric: estimates[metric] * factor[metric] for metric in factor} | {THROUGHPUT: estimates[THROUGHPUT]}
    correction = {metric: np.full(len(means), f) for metric, f in factor.items()}
    parts = source_shares(correction, whole, Loads.of(means))
    moved = np.log(
        reconcile(value, estimates, correction, whole, Loads.of(means))[THROUGHPUT] / estimates[THROUGHPUT]
    )
    np.testing.assert_allclose(-sum(parts[m] * np.log(factor[m]) for m in factor), moved, rtol=1e-9)


def test_no_request_ends_before_its_first_token(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    for quantile in (0.5, 0.99):
        one = means.assign(**{"workload.n_output_token": 1.0, "workload.is_mean": 0.0, "workload.quantile": quantile})
        value = quick.predict_distribution(one).median
        assert (value["e2e_s"] >= value["ttft_s"]).all()


def _shift_by(quick: RoofcastPredictor, one: pd.DataFrame, **factor: float) -> pd.Series:
    plain = quick.predict_distribution(one).median
    references = CalibrationPoints(one, pd.DataFrame({m: plain[m] * f for m, f in factor.items()}))
    moved = quick.predict_distribution(one, references).median.iloc[0]
    return moved / plain.iloc[0]


@pytest.mark.parametrize("factor", [{"e2e_s": 2.0}, {THROUGHPUT: 0.5}])
def test_points_of_derived_metrics_shift_the_source_with_most_of_the_latency(
    factor: dict[str, float], quick: RoofcastPredictor, means: pd.DataFrame
) -> None:
    one = means.head(1)
    ratio = _shift_by(quick, one, **factor)
    shares = quick.predict_ratio(one).shares()["e2e_s"]
    major, minor = sorted(shares, key=lambda source: -shares[source][0])
    assert ratio[major] > 1.02
    assert ratio[minor] == pytest.approx(1.0, rel=1e-9)
    assert 1.02 < ratio["e2e_s"] < 2.0
    assert ratio["e2e_s"] * ratio[THROUGHPUT] == pytest.approx(1.0, rel=1e-9)


def test_a_throughput_beside_a_tpot_tells_nothing_of_ttft(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    ratio = _shift_by(quick, means.head(1), **{"tpot_s": 1.5, THROUGHPUT: 0.5})
    assert ratio["tpot_s"] > 1.02
    assert ratio["ttft_s"] == pytest.approx(1.0, rel=1e-9)


def test_measured_sources_count_before_derived_metrics(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    one = means.head(1)
    apart = _shift_by(quick, one, ttft_s=2.0, tpot_s=2.0)
    both = _shift_by(quick, one, ttft_s=2.0, tpot_s=2.0, e2e_s=3.0)
    pd.testing.assert_series_equal(apart, both)


@pytest.mark.parametrize("factor", [{"e2e_s": 2.0}, {THROUGHPUT: 0.5}, {"itl_s": 2.0}])
def test_points_of_other_metrics_count_where_some_are_wanted(
    factor: dict[str, float], quick: RoofcastPredictor, means: pd.DataFrame
) -> None:
    one = means.head(1)
    plain = quick.predict_distribution(one).median
    points = CalibrationPoints(one, pd.DataFrame({metric: plain[metric] * f for metric, f in factor.items()}))
    moved = quick.predict_distribution(one, points, metrics=["tpot_s"])
    assert list(moved.median) == ["tpot_s"]
    assert (moved.median["tpot_s"] > 1.02 * plain["tpot_s"]).all()
    pd.testing.assert_series_equal(moved.median["tpot_s"], quick.predict_distribution(one, points).median["tpot_s"])


def test_itl_and_tpot_are_interchangeable_except_in_tails(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    one = means.head(1)
    assert _shift_by(quick, one, itl_s=2.0)["tpot_s"] > 1.02
    assert _shift_by(quick, one, tpot_s=2.0)["itl_s"] > 1.02
    assert _shift_by(quick, one, itl_s=2.0)["ttft_s"] == pytest.approx(1.0)
    tail = one.assign(**{"workload.is_mean": 0.0, "workload.quantile": 0.95})
    assert _shift_by(quick, tail, itl_s=2.0)["tpot_s"] == pytest.approx(1.0)


def sd(answer: Prediction, metric: str) -> np.ndarray:
    return answer.log_sd[metric].to_numpy()


def asked_at(X: pd.DataFrame, quantile: float) -> pd.DataFrame:
    return X.assign(**{"workload.is_mean": 0.0, "workload.quantile": quantile})


def test_a_request_is_as_uncertain_as_its_parts(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    answer = quick.predict_distribution(means)
    whole, loop, ttft, tpot = (sd(answer, m) for m in ("e2e_s", THROUGHPUT, *SOURCES))
    waits = quick.predict_ratio(means).estimate.queue_s > 1e-12
    assert 0 < waits.sum() < len(means)
    np.testing.assert_allclose(whole[~waits], loop[~waits], rtol=1e-9)
    assert (whole != loop)[waits].any()
    assert (whole <= np.hypot(ttft, tpot) + 1e-12).all()
    assert (whole >= np.minimum(ttft, tpot) / np.sqrt(2) - 1e-12).all()


def test_a_long_answer_is_as_uncertain_as_its_tokens(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    sizes = {"workload.n_input_token": 16.0, "workload.n_output_token": 4000.0, "workload.concurrency": 1.0}
    long = means.head(5).assign(**sizes)
    answer = quick.predict_distribution(long)
    np.testing.assert_allclose(sd(answer, "e2e_s"), sd(answer, "tpot_s"), rtol=0.02)


def test_throughput_and_its_interval_are_those_of_the_run(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    mean, tail = (quick.predict_distribution(asked_at(means, quantile)) for quantile in (0.5, 0.99))
    np.testing.assert_allclose(mean.median[THROUGHPUT], tail.median[THROUGHPUT], rtol=1e-6)
    np.testing.assert_allclose(sd(mean, THROUGHPUT), sd(tail, THROUGHPUT), rtol=1e-6)


@pytest.mark.parametrize("row", range(0, 27, 6))
def test_points_of_sources_narrow_derived_metrics_of_a_new_llm_by_a_tenth(
    quick: RoofcastPredictor, means: pd.DataFrame, row: int
) -> None:
    one = means.iloc[[row]]
    one = one.assign(**{"model.n_param": 1.07 * one["model.n_param"]})
    plain = quick.predict_distribution(one)
    told = quick.predict_distribution(one, CalibrationPoints(one, plain.median[[*SOURCES]]))
    for metric in ("e2e_s", THROUGHPUT):
        narrower, wider = (sd(a, metric)[0] for a in (told, plain))
        assert narrower < 0.9 * wider


def test_derived_scores_combine_those_of_the_sources(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    """Unless the latency was measured beside them: its own error then counts in the combined standard deviation."""
    parts = quick.predict_ratio(means)
    n = len(means)
    errors = {"ttft_s": np.full(n, 0.3), "tpot_s": np.full(n, 0.3), "e2e_s": np.full(n, np.nan)}
    same = dict.fromkeys(errors, np.full(n, 0.1))
    scores = derived_scores(parts.error_shares(), parts.loads, errors, same)
    assert list(scores) == ["e2e_s"]
    assert (scores["e2e_s"] >= 3 - 1e-9).all()
    assert (scores["e2e_s"] <= 3 * np.sqrt(2) + 1e-9).all()
    own = derived_scores(parts.error_shares(), parts.loads, errors | {"e2e_s": np.full(n, -0.6)}, same)
    np.testing.assert_allclose(own["e2e_s"], 2 * scores["e2e_s"], rtol=0.02)
    for source in SOURCES:
        without = errors | {source: np.full(n, np.nan), "e2e_s": np.full(n, 5.0)}
        assert np.isnan(derived_scores(parts.error_shares(), parts.loads, without, same)["e2e_s"]).all()


def test_the_queue_of_a_full_loop_has_no_error_of_its_own(quick: RoofcastPredictor, means: pd.DataFrame) -> None:
    """Ten times as many clients as slots: the throughput is as uncertain as what happens in a slot."""
    slots = {"config.max_num_seqs": 4.0, "workload.concurrency": 4.0}
    roomy, full = (means.assign(**slots | {"workload.concurrency": n}) for n in (4.0, 40.0))
    parts = quick.predict_ratio(full)
    assert (parts.estimate.queue_s > parts.estimate.e2e_s / 2).all()
    assert (parts.shares()[THROUGHPUT]["ttft_s"] > 0.5).all()
    in_slot, in_roomy = (quick.predict_ratio(X).error_shares()[THROUGHPUT]["ttft_s"] for X in (full, roomy))
    np.testing.assert_allclose(in_slot, in_roomy, atol=0.1)
