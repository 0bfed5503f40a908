import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roofcast.data.campaigns import load_campaigns
from roofcast.data.errors import SchemaError
from roofcast.data.importers import read_measurements
from roofcast.data.importers.guidellm import REQUEST_KEYS
from roofcast.data.importers.request_samples import variation_of
from roofcast.data.measurements.validation import validate_measurements
from tests.data.importers.clients import rows, sample, with_changes
from tests.data.row_builders import LLM_PILOT_SAMPLES, a_row, a_table

DRAWN = 0.2 / math.sqrt(12) / 0.9


def variations(name: str, **overrides: Any) -> set[float]:
    return {round(value, 6) for value in rows(sample(name), **overrides)["length_variation"]}


def of_arrays(document: dict[str, Any]) -> float:
    pairs = zip(document["output_lens"], document["errors"], strict=True)
    lengths = np.array([n for n, error in pairs if n and not error])
    return round(float(lengths.std() / lengths.mean()), 6)


def test_the_variation_is_the_standard_deviation_over_the_mean() -> None:
    assert variation_of(np.array([1.0, 3.0, math.nan])) == 0.5
    assert variation_of(np.array([7.0, 7.0])) == 0.0
    assert math.isnan(variation_of(np.array([])))
    assert math.isnan(variation_of(np.array([0.0, 0.0])))


def test_the_variation_is_at_least_0_or_blank() -> None:
    assert validate_measurements(a_table())["length_variation"].isna().all()
    with pytest.raises(SchemaError, match="length_variation: must be between 0 and 1000"):
        validate_measurements(a_table(a_row(length_variation=-0.1)))


def test_the_variation_is_computed_from_arrays_over_requests() -> None:
    vllm, sglang = "vllm_bench/detailed.json", "sglang_bench/detailed.jsonl"
    assert variations(vllm, model=None, accelerator=None) == {of_arrays(json.loads(sample(vllm).read_text()))}
    assert variations(sglang) == {of_arrays(json.loads(sample(sglang).read_text()))}


def test_requests_and_summaries_of_aiperf_agree() -> None:
    names = ("concurrency_2.json", "concurrency_2.jsonl", "concurrency_2.csv")
    assert [variations(f"aiperf/{name}", concurrency=2) for name in names] == [{0.0}] * 3


def test_the_deviation_in_an_aiperf_summary_is_divided_by_the_mean(tmp_path: Path) -> None:
    file = with_changes("aiperf/concurrency_2.json", tmp_path, {"output_sequence_length.std": 4.0})
    assert set(rows(file)["length_variation"]) == {0.25}


def test_the_deviation_in_a_guidellm_report_is_divided_by_the_mean(tmp_path: Path) -> None:
    key = "benchmarks.0.metrics.output_token_count.successful.std_dev"
    assert set(rows(with_changes("guidellm/rate.json", tmp_path, {key: 8.0}))["length_variation"]) == {0.5}
    assert variations("guidellm/rate.csv") == {0.0}


def test_the_requests_of_a_guidellm_report_have_precedence(tmp_path: Path) -> None:
    numbers = [(1.0, 500.0, 50.0, 100, 11), (1.4, 600.0, 27.6, 60, 33)]
    requests = [dict(zip(REQUEST_KEYS, values, strict=True)) for values in numbers]
    start = "benchmarks.0."
    changes = {
        start + "requests.successful": [{"request_id": "x", "request_args": ""} | r for r in requests],
        start + "metrics.request_totals.successful": 2,
        start + "metrics.output_token_count.successful.mean": 22.0,
        start + "metrics.output_tokens_per_second.successful.mean": 44 / 8,
    }
    assert set(rows(with_changes("guidellm/rate.json", tmp_path, changes))["length_variation"]) == {0.5}


def test_the_variation_follows_from_how_the_tool_chooses_lengths() -> None:
    expected = {"inferencemax/agg_single_node.json": DRAWN, "llm_perf/benchmark.json": 0.0}
    for name, value in expected.items():
        table = read_measurements(None, [sample(name)])
        assert set(table["length_variation"]) == {round(value, 6)}


def test_the_variation_is_computed_from_the_requests_of_llm_pilot() -> None:
    file = sorted(LLM_PILOT_SAMPLES.glob("*.csv"))[0]
    table = read_measurements("llm_pilot", [file], "pilot")
    assert table["length_variation"].nunique() == 1
    assert table["length_variation"].iloc[0] > 0.1


@pytest.mark.slow
def test_campaigns_have_the_variation_of_their_tools() -> None:
    variation = load_campaigns().groupby("campaign")["length_variation"]
    fixed = ("argonne", "aws_neuron", "fastertransformer", "mlc", "optimum_habana", "rocm_vllm", "trtllm_overview")
    assert {name: set(variation.get_group(name)) for name in fixed} == {name: {0.0} for name in fixed}
    assert set(variation.get_group("inferencemax")) == {round(DRAWN, 6)}
    assert variation.get_group("dgx_spark").isna().all()
    assert variation.get_group("llm_pilot").between(0.5, 3.0).all()
    assert variation.get_group("mlperf_inference").between(0.3, 1.5).all()


def test_silicon_rows_have_drawn_or_fixed_lengths() -> None:
    silicon = load_campaigns(["silicon"])
    drawn = silicon[silicon["length_variation"] > 0]
    assert set(drawn["length_variation"]) == {round(DRAWN, 6)}
    assert (drawn["n_output_token"] % 1 > 0).mean() > 0.9  # nine tenths of a power of two
    assert (silicon.loc[silicon["length_variation"] == 0, "n_output_token"] % 1 == 0).all()


def test_static_batches_have_fixed_lengths_and_sampled_requests_blank() -> None:
    for name in ("lmdeploy", "dstack"):
        table = load_campaigns([name])
        is_fixed = table["load"] == "static_batch"
        assert (table.loc[is_fixed, "length_variation"] == 0).all()
        assert table.loc[table["load"].isin(["closed_loop", "open_loop"]), "length_variation"].isna().all()
