import numpy as np
import pandas as pd
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import OutOfRangeError
from roofcast.data.job_campaigns import load_job_campaigns
from roofcast.features.jobs.plan_enumeration import USABLE_RATIO
from roofcast.training.jobs.job_predictor import JobPredictor
from roofcast.training.jobs.job_table import build_job_table
from roofcast.training.lifecycle.shipped import load_shipped_job_predictor

H100 = "nvidia-h100-sxm-80gb"
JOB = {
    "model": "meta-llama/Llama-3.1-8B", "accelerator": H100, "n_accelerator": 64,
    "n_global_batch_sequence": 128, "n_token_per_sequence": 8192, "framework": "torchtitan",
}  # fmt: skip
LENGTHS = (2048, 4096, 6144, 8192, 10_240, 12_288, 16_384)
PLAN = {"tp": 1, "pp": 1, "sharding": "fsdp", "recomputation": "none"}


@pytest.fixture(scope="module")
def predictor() -> JobPredictor:
    return load_shipped_job_predictor()


def own_runs(ratio: float) -> pd.DataFrame:
    """Return five runs of an own stack, `ratio` times as fast as predicted."""
    jobs = pd.DataFrame([JOB | PLAN | {"n_micro_batch_sequence": 1, "n_accelerator": 8 * 2**i} for i in range(5)])
    rate = load_shipped_job_predictor().predict(jobs).token_per_s_per_accelerator
    measured = jobs.assign(throughput_token_per_s=ratio * rate * jobs["n_accelerator"])
    blank = load_job_campaigns(["fms_fsdp"]).iloc[:0]
    rows = pd.concat([blank, measured], ignore_index=True).assign(campaign="ours", stack="lab/a", status="ok")
    texts = rows.select_dtypes(exclude="number").columns
    return rows.fillna(dict.fromkeys(texts, "")).assign(method="pretrain")


def test_the_value_is_the_middle_of_its_interval(predictor: JobPredictor) -> None:
    p = predictor.predict(pd.DataFrame([JOB, JOB | {"n_accelerator": 8}]), coverage=0.8)
    middle = np.sqrt(p.token_per_s_per_accelerator_low * p.token_per_s_per_accelerator_high)
    np.testing.assert_allclose(p.token_per_s_per_accelerator, middle)
    np.testing.assert_allclose(p.peak_memory_byte, np.sqrt(p.peak_memory_byte_low * p.peak_memory_byte_high))
    assert (p.token_per_s_per_accelerator_low < p.token_per_s_per_accelerator).all()
    assert not p.outside.any()


def test_a_wider_coverage_gives_a_wider_interval(predictor: JobPredictor) -> None:
    narrow, wide = (predictor.predict(pd.DataFrame([JOB]), coverage=level) for level in (0.5, 0.9))
    assert wide.peak_memory_byte_high[0] > narrow.peak_memory_byte_high[0]
    with pytest.raises(OutOfRangeError):
        predictor.predict(pd.DataFrame([JOB]), coverage=0.999)


def test_a_job_that_needs_more_memory_fits_with_less_probability(predictor: JobPredictor) -> None:
    batches = [{"n_micro_batch_sequence": n, "n_global_batch_sequence": 64 * n} for n in (1, 2, 4)]
    p = predictor.predict(pd.DataFrame([JOB | PLAN | batch for batch in batches])).p_fits
    assert 1.0 >= p[0] > p[1] > p[2] >= 0.0
    assert p[0] > 0.5 > p[2]


@pytest.mark.parametrize("memory_ratio", [0.7, 1.4])
def test_a_job_whose_median_fills_the_memory_fits_with_one_half(predictor: JobPredictor, memory_ratio: float) -> None:
    """Also where own runs of less or more memory than predicted move the median."""
    lengths = [{"n_token_per_sequence": n, "n_micro_batch_sequence": 1, "memory_kind": "device"} for n in LENGTHS]
    jobs, runs = pd.DataFrame([JOB | PLAN | length for length in lengths]), own_runs(1.0)
    measured = memory_ratio * predictor.predict(runs).peak_memory_byte
    runs = runs.assign(memory_byte_per_accelerator=measured, memory_kind="reserved")
    own = predictor.with_references(runs).predict(jobs)
    memory_byte = load_catalog().accelerators[H100].memory_byte
    np.testing.assert_array_equal(own.p_fits > 0.5, own.peak_memory_byte < USABLE_RATIO * memory_byte)


def test_measured_stacks_narrow_the_interval(predictor: JobPredictor) -> None:
    """An eighth on average; where runs of a stack scatter more than those of others it may widen."""
    runs = load_job_campaigns().drop_duplicates("campaign")
    jobs = [JOB | {"framework": framework} for framework in runs["framework"]]
    known = [job | {"stack": stack} for job, stack in zip(jobs, runs["stack"], strict=True)]
    blank, unknown, named = (
        predictor.predict(pd.DataFrame(table)) for table in (jobs, [job | {"stack": "nobody"} for job in jobs], known)
    )
    before, after = (  # below the value: upper ends may be the peak
        np.log(p.token_per_s_per_accelerator / p.token_per_s_per_accelerator_low) for p in (unknown, named)
    )
    np.testing.assert_allclose(
        blank.token_per_s_per_accelerator_high, unknown.token_per_s_per_accelerator_high, rtol=1e-12
    )
    is_known = ~np.isclose(before, after, rtol=1e-9)  # stacks of which only memory was published stay as they are
    assert is_known.sum() > 40
    ratio = (after / before)[is_known]
    assert (ratio < 1).mean() > 0.75
    assert np.median(ratio) < 0.875


@pytest.mark.parametrize(("host_memory_byte", "fits"), [(50e9, False), (2000e9, True)])
def test_a_job_fits_only_if_its_host_holds_its_share(
    predictor: JobPredictor, host_memory_byte: float, fits: bool
) -> None:
    held = {"framework": "transformers", "sharding": "zero3", "offload": "optimizer+parameters"}
    job = JOB | held | {"n_accelerator": 8, "n_micro_batch_sequence": 1, "host_memory_byte": host_memory_byte}
    assert (predictor.predict(pd.DataFrame([job | {"recomputation": "full"}])).p_fits[0] > 0.5) == fits


def test_no_rate_is_above_the_peak(predictor: JobPredictor) -> None:
    jobs = pd.DataFrame([JOB | {"framework": "unheard-of", "n_token_per_sequence": n} for n in LENGTHS])
    high = predictor.predict(jobs, coverage=predictor.highest_coverage).token_per_s_per_accelerator_high
    assert (high <= build_job_table(jobs).peak_token_per_s * (1 + 1e-9)).all()
    runs = own_runs(1.0)
    peak = build_job_table(runs).peak_token_per_s * runs["n_accelerator"]
    own = predictor.with_references(runs.assign(throughput_token_per_s=3.0 * peak)).predict(runs)
    assert (own.token_per_s_per_accelerator * runs["n_accelerator"] <= peak * (1 + 1e-9)).all()


def test_a_job_beyond_what_was_measured_is_outside(predictor: JobPredictor) -> None:
    jobs = pd.DataFrame([JOB, JOB | {"n_token_per_sequence": 50_000_000, "n_global_batch_sequence": 64}])
    assert predictor.predict(jobs).outside.tolist() == [False, True]


def test_own_runs_move_the_prediction_and_leave_the_original(predictor: JobPredictor) -> None:
    job = pd.DataFrame([JOB | PLAN | {"n_micro_batch_sequence": 1, "n_accelerator": 32}])
    before, runs = predictor.predict(job), own_runs(0.7)
    after = predictor.with_references(runs).predict(job)
    moved = after.token_per_s_per_accelerator / before.token_per_s_per_accelerator
    assert 0.7 <= moved[0] < 0.85
    width = [p.token_per_s_per_accelerator_high / p.token_per_s_per_accelerator_low for p in (before, after)]
    assert width[1] < width[0]
    np.testing.assert_array_equal(predictor.predict(job).peak_memory_byte, before.peak_memory_byte)
    np.testing.assert_allclose(after.peak_memory_byte, before.peak_memory_byte)


def test_rows_of_a_bulk_are_predicted_as_they_are_alone(predictor: JobPredictor) -> None:
    jobs = pd.DataFrame([JOB | {"n_accelerator": n} for n in (8, 16, 64, 8)])
    bulk, alone = predictor.predict(jobs), predictor.predict(jobs.iloc[[2]])
    np.testing.assert_allclose(bulk.token_per_s_per_accelerator[2], alone.token_per_s_per_accelerator[0])
    assert bulk.p_fits[0] == bulk.p_fits[3]
