from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.gpustack_lab import RAW, build_gpustack_lab, options_of
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import check_shipped, needs_raw, one, rules

SETUP = """# Optimizing
## Conclusion
    ```bash
    {recommended}
    ```
## Experimental Setup
### Model
{model}
### Hardware
{hardware}
### Engine Version
- vLLM: v0.11.0
- SGLang: v0.5.3
"""

SCRIPT_PAGE = (
    SETUP.format(
        recommended="vllm serve a", model="Qwen3-14B", hardware="2 \u00d7 NVIDIA H100 SXM GPUs on a single node."
    )
    + """
## Experiment Results
### 1. Engines
??? info "Serving script"
    ```bash
    # a comment
    vllm serve Qwen/Qwen3-14B-FP8 -tp 2 \\
        --max-num-batched-tokens 4096
    ```
    ```
    ============ Serving Benchmark Result ============
    {offline}
    # --max-num-batched-tokens 8192
    ============ Serving Benchmark Result ============
    {other_offline}
    # random 128 input
    ============ Serving Benchmark Result ============
    {closed}
    ```
    ```
    ============ Serving Benchmark Result ============
    {offline}
    ```
    ```bash
    python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B
    ```
    ```
    {third_offline}
    ```
    ```bash
    vllm serve Qwen/Qwen3-14B -tp 4
    ```
    ```
    {fourth_offline}
    ```
"""
)

PROFILE_PAGE = (
    SETUP.format(
        recommended="vllm serve Qwen/Qwen3.5-35B-A3B-FP8", model="- Qwen/Qwen3.5-35B-A3B", hardware="NVIDIA H200"
    )
    + """
##### Balanced
```yaml
dataset_name: Random
dataset_output_tokens: 100
request_rate: 1000
total_requests: 1000
```
##### ShareGPT 8RPS
```yaml
dataset_name: ShareGPT
request_rate: 8
total_requests: 1000
```
## Experiment Results
### Quantization
- Profile: `Balanced`
- Backend Parameters:
  ```bash
  --max-model-len=32768
  --speculative-config={{"method":"mtp","num_speculative_tokens":1}}
  ```
    ```
    {bunched}
    ```
### Other Benchmark Cases
#### Rate 8
- Baseline Backend Parameters:
  ```bash
  --tp-size=1
  --context-length=32768
  ```
    ```
    {smooth}
    ```
- Optimized Backend Parameters:N/A
    ```
    {unknown}
    ```
#### Balanced: long
- Baseline Backend Parameters:
  ```bash
  --tp-size=1
  ```
    ```
    {unfinished}
    ```
"""
)


def printed(
    latencies: dict[str, float], n: int = 1000, n_output: int = 4, duration_s: float = 50.0, limit: int = 0
) -> str:
    """Return a printed result; latencies are in ms, named ``ttft``, ``tpot``, ``itl`` and ``e2e``."""
    rate = n / duration_s
    lines = [
        f"Successful requests:      {n}",
        f"Benchmark duration (s):   {duration_s}",
        f"Total input tokens:       {n * 128}",
        f"Total generated tokens:   {n * n_output}",
        f"Request throughput (req/s):   {rate}",
        f"Output token throughput (tok/s):   {rate * n_output}",
        f"Total Token throughput (tok/s):   {rate * (n_output + 128)}",
    ]
    lines += [f"Maximum request concurrency:   {limit}"] if limit else []
    for statistic in ("Mean", "Median"):
        lines += [f"{statistic} {name.upper()} (ms):   {value}" for name, value in latencies.items() if name != "e2e"]
        if "e2e" in latencies:
            lines += [f"{statistic} Latency(s):   {latencies['e2e'] / 1000}"]
    return "\n    ".join(lines)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    root = tmp_path_factory.mktemp("raw")
    (root / RAW).mkdir(parents=True)
    times = {"ttft": 900.0, "tpot": 50.0, "itl": 40.0}
    (root / RAW / "docs__performance-lab__qwen3-14b__h100.md").write_text(
        SCRIPT_PAGE.format(
            offline=printed(times),
            other_offline=printed(times, duration_s=40.0),
            closed=printed({"ttft": 20.0, "tpot": 10.0, "itl": 9.0}, 100, limit=4, duration_s=1.25),
            third_offline=printed(times, duration_s=30.0),
            fourth_offline=printed(times, duration_s=20.0),
        )
    )
    times = {"ttft": 60.0, "tpot": 20.0, "itl": 20.0, "e2e": 2_040.0}
    (root / RAW / "docs__performance-lab__qwen3.5__h200.md").write_text(
        PROFILE_PAGE.format(
            bunched=printed(times | {"itl": 0.1, "e2e": 20_000.0}, limit=512, n_output=100),
            smooth=printed(times, limit=59, n_output=100, duration_s=125.0),
            unknown=printed(times, limit=60),
            unfinished=printed(times, 514, limit=60),
        )
    )
    (root / RAW / "docs__performance-lab__references__x.md").write_text(
        "| Method | Throughput | TTFT | TPOT |\n|---|---|---|---|\n| BF16 | 3869.3 | 15385.7 | 63.45 |\n"
    )
    return build_gpustack_lab(root)


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {
        "exact_repeat": 1,
        "other_model": 1,
        "other_machine": 1,
        "settings_not_stated": 1,
        "unfinished_run": 1,
        "no_lengths": 1,
    }
    assert result.n_read == len(result.rejected) + 5


def test_command_gives_deployment_and_settings(result: BuildResult) -> None:
    row = one(result.rows, chunk_size_token=4096.0, load="offline")
    assert (row["model"], row["engine_version"], row["weight_precision"]) == ("Qwen/Qwen3-14B", "0.11.0", "fp8")
    assert (row["tp"], row["n_accelerator"], row["stack"]) == (2, 2, "gpustack")


def test_comment_replaces_an_option(result: BuildResult) -> None:
    assert one(result.rows, chunk_size_token=8192.0)["duration_s"] == 40.0


def test_offline_run_keeps_throughputs_alone(result: BuildResult) -> None:
    rows = result.rows[result.rows["load"] == "offline"]
    assert rows[["ttft_s", "tpot_s", "itl_s", "concurrency"]].isna().all(axis=None)
    assert rows["request_throughput_per_s"].tolist() == [20.0, 25.0]


def test_concurrency_limit_is_a_closed_loop(result: BuildResult) -> None:
    rows = result.rows[result.rows["concurrency"] == 4]
    assert rows["statistic"].tolist() == ["mean", "p50"]
    assert (rows.iloc[0]["ttft_s"], rows.iloc[0]["tpot_s"], rows.iloc[0]["itl_s"]) == (0.02, 0.01, 0.009)
    assert rows.iloc[0]["length_variation"] == 0.0


def test_bunched_tokens_leave_e2e(result: BuildResult) -> None:
    row = one(result.rows, concurrency=512.0, statistic="mean")
    assert row["load"] == "closed_loop"
    assert row["e2e_s"] == 20.0
    assert pd.isna(row["ttft_s"])
    assert (row["speculation"], row["n_speculative_token"], row["max_context_token"]) == ("mtp", 1, 32768)
    assert (row["engine"], row["weight_precision"], row["length_variation"]) == ("vllm", "fp8", 0.0)


def test_guidellm_itl_is_tpot_of_an_open_loop(result: BuildResult) -> None:
    row = one(result.rows, load="open_loop", statistic="mean")
    assert (row["engine"], row["weight_precision"], row["request_rate"]) == ("sglang", "bf16", 8.0)
    assert (row["ttft_s"], row["tpot_s"], row["e2e_s"]) == (0.06, 0.02, 2.04)
    assert pd.isna(row["itl_s"])


@pytest.mark.parametrize(
    ("command", "split"),
    [
        ("vllm serve Qwen/Qwen3-14B -tp 1 -dp 2 --enable-expert-parallel", [2, 1, 2, 2]),
        ("sglang.launch_server --tp-size 2 --dp-size 2 --enable-dp-attention", [2, 1, 2, 0]),
        ("sglang.launch_server --tp 2 --enable-dp-attention --moe-a2a-backend=deepep", [2, 2, 1, 2]),
    ],
)
def test_data_parallel_attention_divides_tensor_parallelism(tmp_path: Path, command: str, split: list[int]) -> None:
    (tmp_path / RAW).mkdir(parents=True)
    page = SCRIPT_PAGE.partition("### 1.")[0] + f"### 1.\n```bash\n{command}\n```\n```\n{printed({})}\n```\n"
    (tmp_path / RAW / "page.md").write_text(page)
    row = build_gpustack_lab(tmp_path).rows.iloc[0]
    assert row[["n_accelerator", "tp", "dp", "ep"]].fillna(0).tolist() == split


def test_option_without_value() -> None:
    assert options_of("trtllm-serve a/b --enable_chunked_prefill --max_seq_len=4096") == {
        "model": "a/b",
        "enable-chunked-prefill": "",
        "context": "4096",
    }


def test_missing_pages_raise_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="has no pages"):
        build_gpustack_lab(tmp_path)


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("gpustack_lab", build_gpustack_lab)
