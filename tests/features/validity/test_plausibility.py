import pandas as pd
import pytest

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.measurements.validation import validate_measurements
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.validity.plausibility import implausible_rows, millisecond_columns, non_monotone_rows
from tests.builders import a_model, a_question, an_accelerator

# 13.5 GB over 2 TB/s: no token sooner than 6.5 ms; 1000 tokens x 13.2 GFLOP over 300 TFLOP/s: no prefill under 44 ms.
SOUND = {"ttft_s": 0.2, "itl_s": 0.012, "tpot_s": 0.013, "output_throughput_token_per_s": 570.0}


def described(**changes: object) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a sound row with changes, and its descriptors."""
    rows = validate_measurements(pd.DataFrame([a_question() | SOUND | {"campaign": "ours"} | changes]))
    model, part = a_model(), an_accelerator()
    return rows, describe(rows, {model.id: model}, {part.id: part})


def rules(**changes: object) -> list[str]:
    return implausible_rows(*described(**changes))["rule"].tolist()


def test_a_sound_row_passes() -> None:
    assert rules() == []


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"itl_s": 0.005}, "faster_than_memory"),
        ({"tpot_s": 0.005, "itl_s": None}, "faster_than_memory"),
        ({"ttft_s": 0.03}, "faster_than_compute"),
        ({"output_throughput_token_per_s": 30_000.0, "concurrency": 400}, "more_than_peak"),
        ({"output_throughput_token_per_s": 2_000.0}, "inconsistent_throughput"),
        ({"output_throughput_token_per_s": 100.0}, "inconsistent_throughput"),
        ({"tpot_s": 13.0, "itl_s": 12.0}, "inconsistent_throughput"),
    ],
)
def test_each_rule_finds_its_error(changes: dict[str, object], rule: str) -> None:
    assert rules(**changes) == [rule]


@pytest.mark.parametrize(
    "changes",
    [
        {"tpot_s": 0.005, "itl_s": 0.005, "speculation": "mtp", "output_throughput_token_per_s": None},
        {"ttft_s": 0.03, "prefix_caching": "on"},
        {"ttft_s": 0.03, "prefix_cache_ratio": 0.9},
        {"output_throughput_token_per_s": 100.0, "n_request": 100, "n_failed": 60},
        {"output_throughput_token_per_s": 100.0, "derived": "output_throughput_token_per_s"},
        {"itl_s": 0.0, "tpot_s": None, "statistic": "p99", "output_throughput_token_per_s": None},
    ],
)
def test_what_may_be_is_left_alone(changes: dict[str, object]) -> None:
    assert rules(**changes) == []


SECONDS = ("ttft_s", "nttft_s_per_token", "itl_s", "tpot_s", "e2e_s")


@pytest.mark.slow
def test_no_part_of_a_shipped_campaign_is_in_milliseconds() -> None:
    """Of each model on each accelerator under each load: files are mostly larger than that.

    GPULlama3.java prefills token by token, 209 to 252 times as long as the estimate.
    """
    catalog, everything = load_catalog(), load_campaigns()
    everything = everything[everything["engine"] != "gpullama3.java"]
    for name, rows in everything.groupby(["campaign", "model", "accelerator", "load"]):
        assert millisecond_columns(rows, describe(rows, catalog.models, catalog.accelerators)) == {}, name


@pytest.mark.parametrize(
    "column", [SECONDS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in SECONDS[1:])]
)
def test_milliseconds_in_a_column_of_seconds_stand_out_in_every_campaign(column: str) -> None:
    catalog, everything = load_catalog(), load_campaigns()
    tells_unit = everything[column].notna() & everything["statistic"].isin(["mean", "p50"])
    for name, rows in everything[tells_unit].groupby("campaign"):
        if set(rows["load"]) <= {"offline", "open_loop"}:
            continue  # a queue may be that long
        descriptors = describe(rows, catalog.models, catalog.accelerators)
        assert set(millisecond_columns(rows.assign(**{column: 1e3 * rows[column]}), descriptors)) == {column}, name


@pytest.mark.parametrize(
    ("changes", "columns"),
    [
        ({}, {"ttft_s"}),
        ({"ttft_s": 0.2}, set()),
        ({"ttft_s": 20.0}, set()),  # slow is no unit
        ({"ttft_s": 8e4}, set()),  # whatever it is, no millisecond
        ({"tpot_s": 13.0, "itl_s": 12.0}, {"ttft_s", "tpot_s", "itl_s"}),
        ({"load": "offline"}, set()),  # the queue may have been that long
        ({"concurrency": None, "request_rate": 0.1, "load": "open_loop"}, {"ttft_s"}),
        ({"concurrency": None, "request_rate": 1e4, "load": "open_loop"}, set()),
        ({"statistic": "p99", "output_throughput_token_per_s": None}, set()),
    ],
)
def test_milliseconds_are_told_by_physics(changes: dict[str, object], columns: set[str]) -> None:
    assert set(millisecond_columns(*described(**{"ttft_s": 200.0} | changes))) == columns


def series(*steps: tuple[int, float], **changes: object) -> pd.DataFrame:
    sound = a_question() | SOUND | {"campaign": "ours"} | changes
    return validate_measurements(pd.DataFrame([sound | {"concurrency": c, "tpot_s": s} for c, s in steps]))


@pytest.mark.parametrize(
    ("steps", "out"),
    [
        (((1, 0.010), (2, 0.012), (4, 0.009)), []),  # noise
        (((1, 0.010), (2, 0.0071)), []),
        (((1, 0.010), (2, 0.0069)), [0, 1]),  # nothing tells which of the two is right
        (((1, 0.010), (2, 0.011), (4, 0.012), (8, 0.004)), [3]),
        (((1, 0.030), (2, 0.010), (4, 0.011)), [0]),
        (((8, 0.004), (1, 0.010), (4, 0.012), (2, 0.011)), [0]),
        (((2, 0.010), (2, 0.004)), []),  # a repeat at the same load
    ],
)
def test_a_step_is_no_faster_with_more_requests(steps: tuple[tuple[int, float], ...], out: list[int]) -> None:
    assert non_monotone_rows(series(*steps)).nonzero()[0].tolist() == out


@pytest.mark.parametrize("changes", [{"engine_version": "2"}, {"tp": 1.0}, {"date": "2026"}, {"n_output_token": 1.0}])
def test_rows_of_two_series_are_not_compared(changes: dict[str, object]) -> None:
    rows = pd.concat([series((1, 0.010)), series((8, 0.004), **changes)], ignore_index=True)
    assert not non_monotone_rows(rows).any()


def test_a_static_batch_is_judged_by_its_whole_latency() -> None:
    rows = series((1, 0.01), (8, 0.002), load="static_batch", e2e_s=2.0)
    assert not non_monotone_rows(rows).any()
    assert non_monotone_rows(rows.assign(e2e_s=[2.0, 1.0])).all()


def test_the_percentiles_of_a_run_go_with_its_mean() -> None:
    steps = ((1, 0.010), (2, 0.011), (4, 0.012), (8, 0.004))
    rest: dict[str, object] = {"output_throughput_token_per_s": None}
    tables = [series(*steps), *(series(*steps, statistic=name, **rest) for name in ("p50", "p99"))]
    rows = pd.concat([*tables, series((8, 0.004), statistic="p99", date="2026", **rest)], ignore_index=True)
    out = rows[non_monotone_rows(rows)]
    assert out["statistic"].tolist() == ["mean", "p50", "p99"]
    assert set(out["concurrency"]) == {8}
    assert set(out["date"]) == {""}


def test_a_repeat_of_a_run_is_judged_by_itself() -> None:
    rows = series((1, 0.010), (2, 0.011), (4, 0.012), (8, 0.004), (8, 0.013))
    assert non_monotone_rows(rows).nonzero()[0].tolist() == [3]


def test_tails_and_open_loops_may_fall() -> None:
    assert not non_monotone_rows(
        series((1, 0.010), (8, 0.004), statistic="p99", output_throughput_token_per_s=None)
    ).any()
    assert not non_monotone_rows(series((1, 0.010), (8, 0.004), load="open_loop", request_rate=1.0)).any()
