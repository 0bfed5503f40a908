import numpy as np
import pandas as pd
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.data.specs import ModelSpec
from roofcast.features.columns import FEATURE_NAMES
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS as C
from roofcast.features.engine.estimate import estimate
from roofcast.features.pipeline import (
    ENGINES_SEEN_WIDELY,
    METRICS,
    N_DECIMAL,
    build_features,
    estimate_metrics,
    estimate_statistics,
)
from roofcast.features.queries import descriptor_arrays
from tests.builders import a_question, describe_questions
from tests.data.model_config.model_configs import CONFIGS

NAN = float("nan")
GB200 = "nvidia-gb200"
RECURRENT = model_from_config(CONFIGS["mamba-2.8b"], "ours/mamba")


def test_features_come_in_the_order_of_the_registry() -> None:
    descriptors = describe_questions(a_question(), a_question(concurrency=64)).set_index(pd.Index([5, 2]))
    features, estimates, _ = build_features(descriptors, C)
    assert tuple(features.columns) == FEATURE_NAMES
    assert features.index.tolist() == [5, 2]
    assert tuple(estimates) == METRICS


def test_every_model_on_every_accelerator_is_finite() -> None:
    catalog = load_catalog()
    models = dict(catalog.models) | {RECURRENT.id: RECURRENT}
    questions = pd.DataFrame(
        [
            a_question(model=model, accelerator=part, n_accelerator=n, concurrency=users, request_rate=rate)
            for model in models
            for part in catalog.accelerators
            for n, users, rate in [(1, 1, NAN), (8, 512, NAN), (2, NAN, 0.001), (2, NAN, 1e5)]
        ]
    )
    features, estimates, _ = build_features(describe(questions, models, catalog.accelerators), C)
    assert np.isfinite(features.to_numpy()).all()
    for metric in METRICS:
        assert np.isfinite(estimates[metric]).all()
        assert (estimates[metric] > 0).all()


def test_percentiles_are_finite_where_prefill_runs_apart() -> None:
    catalog = load_catalog()
    apart = {"n_accelerator": 72, "n_prefill_accelerator": 48, "n_decode_accelerator": 24, "concurrency": 128}
    question = a_question(n_input_token=7372.8, n_output_token=921.6, statistic="p50", **apart)
    with np.errstate(invalid="ignore"):
        estimates = build_features(
            describe_questions(
                question,
                model=catalog.models["deepseek-ai/DeepSeek-R1-0528"],
                accelerator=catalog.accelerators[GB200],
            ),
            C,
        )[1]
    assert np.isfinite(estimates["ttft_s"]).all()


def test_features_by_hand() -> None:
    features, _, e = build_features(describe_questions(a_question(n_accelerator=4)), C)
    row = features.iloc[0]
    assert row["hardware.bandwidth_log"] == pytest.approx(np.log(8e12))
    assert row["hardware.balance_log"] == pytest.approx(np.log(150))
    assert row["hardware.link_ratio_log"] == pytest.approx(np.log(0.3))
    assert row["config.tp_log"] == pytest.approx(np.log(4))
    assert row["model.kv_ratio"] == 2.0
    assert row["model.active_ratio"] == 1.0
    assert row["roofline.step_log"] == pytest.approx(np.log(e.step.total_s[0]))
    assert row["roofline.expert_time_ratio"] == 0.0
    shares = ("weight", "expert", "kv", "overhead", "link")
    elementwise = e.step.elementwise_s[0] / e.step.total_s[0]
    assert sum(
        row[f"roofline.{share}_time_ratio"] if share != "overhead" else row["roofline.overhead_ratio"]
        for share in shares
    ) == pytest.approx(1 - elementwise)


def test_features_do_not_depend_on_the_other_rows() -> None:
    questions = [a_question(concurrency=users) for users in (1, 7, 300)]
    questions += [a_question(concurrency=NAN, request_rate=3), a_question(load="static_batch")]
    questions += [a_question(concurrency=NAN, load="offline", n_request=1000)]
    whole, _, _ = build_features(describe_questions(*questions), C)
    for i, question in enumerate(questions):
        alone, _, _ = build_features(describe_questions(question), C)
        np.testing.assert_array_equal(alone.to_numpy()[0], whole.to_numpy()[i])


def test_the_mean_gap_has_the_prefills_of_others_in_it_and_the_median_has_not() -> None:
    descriptors = describe_questions(a_question(statistic="mean"), a_question(statistic="p50"))
    d = descriptor_arrays(descriptors)
    e = estimate(d, C)
    metrics = estimate_metrics(d, e)
    assert metrics["itl_s"].tolist() == [e.tpot_s[0], e.itl_s[1]]
    assert e.itl_s[0] < e.tpot_s[0]


def test_means_are_estimated_as_they_are_and_percentiles_rise() -> None:
    descriptors = describe_questions(*(a_question(statistic=s) for s in ("mean", "p50", "p90", "p95", "p99")))
    d = descriptor_arrays(descriptors)
    e = estimate(d, C)
    asked, means = estimate_statistics(d, C, e), estimate_metrics(d, e)
    assert set(asked) == set(METRICS)
    for metric, values in asked.items():
        assert values[0] == means[metric][0], metric
        if metric != "output_throughput_token_per_s":
            assert (np.diff(values[1:]) >= 0).all(), metric
    assert asked["ttft_s"][4] > asked["ttft_s"][1]


def test_an_estimate_that_is_known_and_fewer_metrics_change_nothing() -> None:
    descriptors = describe_questions(*(a_question(statistic=s) for s in ("mean", "p50", "p95")))
    features, estimates, whole = build_features(descriptors, C)
    again, some, _ = build_features(descriptors, C, whole, {"tpot_s", "nttft_s_per_token"})
    pd.testing.assert_frame_equal(again, features)
    assert list(some) == ["nttft_s_per_token", "tpot_s"]
    for metric, values in some.items():
        np.testing.assert_array_equal(values, estimates[metric])


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "tgi", "ours", ""])
def test_an_engine_that_is_seen_widely_has_a_column(engine: str) -> None:
    row = build_features(describe_questions(a_question(engine=engine)), C)[0].iloc[0]
    told = {name: row[f"config.is_{name}"] for name in ENGINES_SEEN_WIDELY}
    assert told == {name: float(name == engine) for name in ENGINES_SEEN_WIDELY}


PLAIN = {
    "hardware.link_ratio_log": 0, "roofline.link_time_ratio": 0, "model.is_mla": 0, "model.is_moe": 0,
    "model.is_linear": 0, "model.is_encoder_decoder": 0, "workload.is_static": 0, "workload.is_open": 0,
    "workload.is_offline": 0,
}  # fmt: skip
LATENT = {"model.kv_ratio": 576 / (128 * 192), "model.is_mla": 1, "model.is_moe": 1, "model.is_linear": 0}
DRAFTS = {"config.n_draft_token": 3, "config.poll_interval_step": 10, "workload.length_variation": 0.1}
MIXTRAL = load_catalog().model("mixtral-8x7b")


@pytest.mark.parametrize(
    ("model", "cells", "expected"),
    [
        (None, {}, PLAIN),
        (load_catalog().model("deepseek-v3"), {}, LATENT),
        (RECURRENT, {}, {"model.kv_ratio": 0, "model.is_linear": 1}),
        (MIXTRAL, {}, {"model.active_ratio": MIXTRAL.n_param_active / MIXTRAL.n_param}),
        (None, {"concurrency": NAN, "request_rate": 2.0, "load": "open_loop"}, PLAIN | {"workload.is_open": 1}),
        (None, {"concurrency": NAN, "load": "offline"}, PLAIN | {"workload.is_offline": 1}),
        (None, {"load": "static_batch"}, PLAIN | {"workload.is_static": 1}),
        (
            None,
            {"speculation": "mtp", "n_speculative_token": 3, "poll_interval_step": 10, "length_variation": 0.1},
            DRAFTS,
        ),
    ],
)
def test_the_kind_of_model_load_and_setting_is_seen(
    model: ModelSpec | None, cells: dict[str, object], expected: dict[str, float]
) -> None:
    row = build_features(describe_questions(a_question(**cells), model=model), C)[0].iloc[0]
    assert row[list(expected)].to_dict() == pytest.approx(expected, rel=1e-4)


def test_features_have_no_digits_that_depend_on_the_processor() -> None:
    """The queue of a nearly idle server is a tiny power; trees would split on what is left of it."""
    descriptors = describe_questions(a_question(concurrency=NAN, request_rate=0.01), a_question(concurrency=7))
    features, _, e = build_features(descriptors, C)
    assert 0 < e.queue_s[0] < 1e-9
    assert features["roofline.queue_ratio"].iloc[0] == 0
    assert (features == features.round(N_DECIMAL)).all().all()
