"""Changed samples that are refused with file, line and field, for all formats."""

import math
from pathlib import Path
from typing import Any, Final

import pytest

from roofcast.data.errors import SchemaError
from tests.data.importers.clients import rows, sample, with_changes
from tests.data.importers.test_readings import (
    AIPERF,
    GUIDELLM,
    LLM_PERF,
    OVERRIDES,
    SINGLE,
    SWEEP,
    VLLM_DETAILED,
    B,
)

RECORDS: Final = "aiperf/concurrency_2.jsonl"
OWN: Final[dict[str, dict[str, Any]]] = {RECORDS: {"concurrency": 2}, AIPERF: {"model": "ours/tiny"}}

REFUSALS: Final[dict[tuple[str, int], list[tuple[dict[str, Any], str, str]]]] = {
    (VLLM_DETAILED, 0): [
        ({"tp": "two"}, "tp", "must be a number"),
        ({"n_accelerator": [1]}, "n_accelerator", "must be a number"),
        ({"concurrency": 8}, "concurrency", r"is '4\.0' in the file, but is set to '8\.0'"),
        ({"load": "steady"}, "load", "is 'closed_loop' in the file, but is set to"),
        ({"note": "=1+1"}, "note", r"must not begin with =, \+, - or @, which a"),
        ({"engine": "a\u202eb"}, "engine", "must hold no control or invisible character"),
        ({"ttfts.2": -0.1}, "ttfts[2]", "must be a finite number of at least 0"),
        ({"itls.1.0": None}, "itls[1][0]", "must be a finite number of at least 0, got nothing"),
        ({"itls.1": 4}, "itls[1]", "must be an array of numbers, got 4"),
        ({"itls": [[0.1]]}, "itls", "must have 12 entries as input_lens has, got 1"),
        ({"errors": ["x"]}, "errors", "must have 12 entries"),
        ({"errors": "x"}, "errors", "must be an array"),
        ({"errors": ["x"] * 12}, "output_lens", "no request completed, although the file counts some"),
        ({"latencies.0": 0.001}, "", r"latencies\[0\] must be at least ttfts\[0\]"),
        ({"date": "yesterday"}, "date", "must be a date such as"),
        ({"date": "20259999-000000"}, "date", "must be a date such as"),
        ({"request_rate": "fast"}, "request_rate", "must be a rate above 0 or inf"),
        ({"request_rate": 0}, "request_rate", "must be a rate above 0 or inf"),
        ({"model_id": 7}, "model_id", "must be a text"),
        ({"model_id": "@cmd"}, "model", "must not begin with"),
        ({"duration": ...}, "duration", "no such field: this is no result of vllm bench serve, or a truncated one"),
    ],
    (SWEEP, 2): [
        ({"mean_ttft_ms": "fast"}, "mean_ttft_ms", "must be a finite number of at least 0"),
        ({"mean_e2e_latency_ms": 1e-3}, "e2e_s", r"E2E of 1e-06 s is far from TTFT \+ TPOT x"),
        ({"server_info.tp_size": 1.5}, "tp", "must be a whole number"),
        ({"server_info.version": 5}, "server_info.version", "must be a text"),
        ({"server_info.model_path": "=x"}, "model", r"must not begin with =, \+, - or @, which a"),
        ({"completed": None}, "completed", "no such field: this is no result of"),
        ({"max_concurrency": 0.5}, "concurrency", r"must be between 1 and 1e\+06"),
        ({"p99_ttft_ms": 1e12}, "ttft_s", "p99 must be between 1e-07 s and a day"),
    ],
    (GUIDELLM, 0): [
        ({B + "config.strategy.type_": "burst"}, "benchmarks[0].config.strategy.type_", "must be one of synchronous"),
        ({B + "config.strategy.rate": 0}, "benchmarks[0].config.strategy.rate", "must be a rate above 0"),
        ({B + "metrics.request_totals": ...}, "benchmarks[0].metrics.request_totals.successful", "must be given"),
        ({B + "start_time": 1e300}, "benchmarks[0].start_time", "must be a date such as"),
        (
            {B + "metrics.time_to_first_token_ms.successful.mean": -1},
            "benchmarks[0].metrics.time_to_first_token_ms.successful.mean",
            "finite number of at least 0, got -1",
        ),
        ({B + "metrics.request_latency.successful.mean": 890.97}, "e2e_s", "is far from TTFT"),
        (
            {B + "metrics.time_to_first_token_ms.successful": [1]},
            "benchmarks[0].metrics.time_to_first_token_ms.successful",
            "must be an object, got an array",
        ),
        ({"benchmarks": []}, "benchmarks", "holds no benchmark"),
        ({"benchmarks": {"a": 1}}, "benchmarks", "must be an array"),
        ({"metadata": {}}, "metadata", "no guidellm_version: this is no report of GuideLLM"),
        ({"config.spec.backend.model": 3}, "config.spec.backend.model", "must be a text"),
    ],
    (AIPERF, 0): [
        ({"time_to_first_token.unit": "s"}, "e2e_s", "E2E of 1.006 s is far from TTFT"),
        ({"request_latency.unit": "s"}, "e2e_s", "E2E of 1006 s is far from TTFT"),
        ({"inter_token_latency.unit": "s"}, "e2e_s", "E2E of 1.006 s is far from TTFT"),
        ({"benchmark_duration.unit": "ms"}, "e2e_s", "a mean of 1.006 s is longer than the run"),
        ({"time_to_first_token.unit": "fortnight"}, "time_to_first_token.unit", "must be one of ns, us, ms"),
        ({"time_to_first_token.unit": ...}, "time_to_first_token.unit", "must be one of ns, us, ms"),
        ({"output_token_throughput.unit": "tokens/min"}, "output_token_throughput.unit", "must be one of tokens/sec"),
        ({"time_to_first_token.avg": -1}, "time_to_first_token.avg", "at least 0, got -1"),
        ({"time_to_first_token": 3}, "time_to_first_token", "must be an object, got 3"),
        ({"request_count": ...}, "request_count", "this is no summary of AIPerf, or a truncated one"),
        ({"start_time": "noon"}, "start_time", "must be a date such as"),
        ({"input_config.models.items": [{"name": "a"}, {"name": "b"}]}, "input_config.models", "must name one model"),
        ({"input_config.phases": 3}, "input_config.phases", "must be an array"),
        ({"input_config": 3}, "input_config", "must be an object"),
    ],
    (RECORDS, 7): [
        (
            {"metrics.time_to_first_token.value": -1},
            "metrics.time_to_first_token.value",
            "must be a finite number of at least 0",
        ),
        ({"metrics.time_to_first_token.value": [1]}, "metrics.time_to_first_token.value", "must be a number"),
        (
            {"metrics.time_to_first_token.unit": "h"},
            "metrics.time_to_first_token.unit",
            "must be one of ns, us, ms, s, sec, seconds",
        ),
        (
            {"metrics.inter_chunk_latency.value": [0.1, "x"]},
            "metrics.inter_chunk_latency.value[1]",
            "must be a finite number of at least 0",
        ),
        (
            {"metrics.inter_chunk_latency.value": 3},
            "metrics.inter_chunk_latency.value",
            "must be an array of numbers",
        ),
        ({"metadata.request_start_ns": ...}, "metadata.request_start_ns", "must be given"),
        ({"metadata": ...}, "metadata", "no such field: this is no record of"),
    ],
    (SINGLE, 0): [
        (
            {"tput_per_gpu": ...},
            "tput_per_gpu",
            "no such field: this is no result of InferenceMAX, or a truncated one",
        ),
        ({"tp": None}, "tp", "must be a whole number from 1"),
        ({"tp": 3.5}, "tp", "must be a whole number from 1 to 100000, got 3.5"),
        ({"tp": 8}, "tput_per_gpu|e2e_s", "are not input and output together|in flight"),
        ({"tp": 10**9}, "tp", "must be a whole number"),
        ({"ep": 0}, "ep", "must be a whole number"),
        ({"conc": "32"}, "conc", "must be a finite number"),
        ({"precision": "fp3"}, "precision", "must be one of fp32"),
        ({"spec_decoding": "guess"}, "spec_decoding", "must be one of none, off, mtp"),
        ({"dp_attention": "maybe"}, "dp_attention", "must be true or false"),
        ({"isl": 0}, "isl", "must be at least 1"),
        ({"mean_ttft": math.nan}, "mean_ttft", "must be a finite number of at least 0, got nan"),
        ({"mean_tpot": 21.0}, "mean_tpot", r"21 s is not the inverse of mean_intvty = .*; is it in seconds\?"),
        ({"input_tput_per_gpu": 1.0}, "tput_per_gpu", "are not input and output together"),
        ({"model": "=cmd()"}, "model", "must not begin with"),
        ({"hw": ["h200"]}, "hw", "must be a text"),
    ],
    (LLM_PERF, 0): [
        ({"report.prefill.latency": None}, "report.prefill.latency", "no such field"),
        ({"report.prefill.latency.mean": math.nan}, "report.prefill.latency.mean", "must be a finite number"),
        ({"report.decode.latency.p95": "1"}, "report.decode.latency.p95", "must be a finite number"),
        ({"report.decode.latency.unit": "h"}, "report.decode.latency.unit", "must be one of ns, us, ms, s"),
        ({"report.decode.latency.mean": 0.0}, "report.decode.throughput.value", "gives 0 tokens with its latency"),
        ({"report.decode.throughput.value": 3.0}, "report.decode.throughput.value", "where the batch has 60 after"),
        ({"report.decode.throughput.unit": "samples/s"}, "report.decode.throughput.unit", "must be tokens/s"),
        ({"report.decode.memory.unit": "GB"}, "report.decode.memory.unit", "must be MB, got 'GB'"),
        ({"report.prefill.energy.unit": "J"}, "report.prefill.energy.unit", "must be kWh, got 'J'"),
        ({"config.scenario.name": "training"}, "config.scenario.name", "must be inference, got 'training'"),
        ({"config.backend.task": "image-to-text"}, "config.backend.task", "must be one of text-generation"),
        ({"config.scenario.generate_kwargs.num_beams": 4}, "config.scenario.generate_kwargs.num_beams", "must be 1"),
        ({"config.backend.device_ids": "all"}, "config.backend.device_ids", "must be numbers of devices such as 0,1"),
        ({"config.environment.gpu": "T4"}, "config.environment.gpu", "must be an array"),
        ({"config.backend": []}, "config.backend", "must be an object, got an array"),
        ({"config.backend.model": "@x"}, "model", "must not begin with"),
    ],
}
"""By sample and line that is changed, 0 in one document: changes, field and problem of the error."""


@pytest.mark.parametrize(
    ("place", "refusal"), [(place, refusal) for place, refusals in REFUSALS.items() for refusal in refusals]
)
def test_a_wrong_value_is_refused_with_file_line_and_field(
    tmp_path: Path, place: tuple[str, int], refusal: tuple[dict[str, Any], str, str]
) -> None:
    (name, line), (changes, field, problem) = place, refusal
    file = with_changes(name, tmp_path, changes, line=line or 1)
    with pytest.raises(SchemaError, match=problem) as caught:
        rows(file, name=name.partition("/")[0], **OVERRIDES.get(name, {}) | OWN.get(name, {}))
    assert caught.value.field in field.split("|")
    assert (caught.value.source, caught.value.line) == (file.name, line)


CONTENTS: Final[dict[str, list[tuple[bytes, str]]]] = {
    "vllm_bench": [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"[]", "line 1: must be a JSON object, got an array"),
        (b'{"a": 1}', "completed: no such field"),
        (b'{"a":\n\n 1', "line 3: ends early: the file is truncated"),
        (b'{"a":\n "x', "line 2: ends early: the file is truncated"),
        (b'{"a": 1,}', "line 1: is not valid JSON"),
        (b'{"a":\n"\xff"}', "line 2: must be UTF-8"),
        (b'{"a":' + b"[" * 100_000, "is nested too deeply"),
        (b'{"a":' + b"9" * 5000 + b"}", "holds a number of too many digits"),
    ],
    "inferencemax": [
        (b"", "is empty"),
        (b"[]", "holds no result"),
        (b"[\n{}", "ends early: the file is truncated"),
        (b'[\n{"hw": "h2', "line 2: ends early: the file is truncated"),
        (b"[1]", r"\[0\]: must be an object, got 1"),
        (b"\xef\xbb\xbf[{}]", r"\[0\]\.hw: no such field"),
        (b"7", "must be an object, got 7"),
        (b"[" * 100_000, "is nested too deeply"),
    ],
    "mlperf_summary": [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"Scenario : Server\n", "is no summary of LoadGen"),
        (b"MLPerf Results Summary\nScenario : Server\n", "line 2: ends early: LoadGen's count of errors"),
        (b"MLPerf Results Summary\n\xff", "line 2: must be UTF-8"),
        (b"MLPerf Results Summary\nNo errors encountered during test.", "Scenario: must be one of Server"),
    ],
}
"""By format: contents of a file, and its problem."""


@pytest.mark.parametrize(
    ("format_name", "refusal"), [(name, refusal) for name, refusals in CONTENTS.items() for refusal in refusals]
)
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, format_name: str, refusal: tuple[bytes, str]) -> None:
    content, problem = refusal
    (file := tmp_path / "run.json").write_bytes(content)
    with pytest.raises(SchemaError, match=rf"run\.json.*{problem}"):
        rows(file, name=format_name)


EDITS: Final[dict[str, list[tuple[str, str, str]]]] = {
    "guidellm/rate.csv": [
        ("constant@4.00", "constant@fast", "line 4: Benchmark, Strategy: must be a finite number"),
        ("constant@4.00", "constant", r"benchmarks\[0\].config.strategy.rate: must be a rate above 0"),
        (",31,", ",-31,", "line 4: Request Counts, Successful: must be a finite number"),
        ('"[', '"[0.1, ', "Percentiles: must list 11 numbers: min, p001"),
        ('"[', '"[[', "Percentiles: is not valid JSON"),
        (",31,", ",", "line 4: must have .* cells as the header has"),
        ("Successful,", "Successes,", "line 1: is no CSV report of GuideLLM"),
        ("2026-11-20 04:55:24", "noon", "line 4: Timings, Start Time: must be a date such as"),
    ],
    "aiperf/concurrency_2.csv": [
        (
            "First Token (ms),680.46",
            "First Token (ms),-680.46",
            "time_to_first_token: must be a finite number of at least 0, got '-680.46'",
        ),
        ("Time to First Token (ms)", "Time to First Token (h)", r"time_to_first_token\.unit: must be one of ns, us"),
        ("Request Count,16.00\n", "", "Request Count: no line 'Request Count': is the file truncated"),
        ("Request Count,16.00\n", "Request Count\n", "must have 2 cells as the header has, got 1"),
        ("Metric,avg", "Metrik,avg", "must have 0 cells|holds no metric"),
    ],
    "aiperf/sweep.csv": [
        ("\n2,", "\ntwo,", "concurrency: must be a finite number of at least 0, got 'two'"),
        ("\n2,", "\n2,7,", "must have .* cells as the header has"),
    ],
}
"""By sample of text: what is replaced, by what, and the problem."""


@pytest.mark.parametrize(("name", "edit"), [(name, edit) for name, edits in EDITS.items() for edit in edits])
def test_a_table_with_a_wrong_cell_is_refused(tmp_path: Path, name: str, edit: tuple[str, str, str]) -> None:
    (old, new, problem), file = edit, tmp_path / Path(name).name
    text = sample(name).read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    overrides = {"concurrency": 2} if name == "aiperf/concurrency_2.csv" else {}
    with pytest.raises(SchemaError, match=rf"{file.name}.*({problem})"):
        rows(file, name=name.partition("/")[0], **overrides)
