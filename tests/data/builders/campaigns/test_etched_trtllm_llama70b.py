from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.etched_trtllm_llama70b import RAW, build_etched_trtllm_llama70b
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import check_shipped, needs_raw, one, rules

LOG = """\
[TensorRT-LLM][INFO] Max KV cache pages per sequence: 391
[07/11/2025-07:07:00] [TRT-LLM] [I] Benchmark started.
Model:   meta-llama/Llama-3.1-70B-Instruct
TensorRT-LLM Version: 0.16.0
KV Cache Dtype:  FP8
Quantization:  FP8
Max Sequence Length: 25000
TP Size:  8
PP Size:  1
Max Runtime Batch Size: 2048
Max Runtime Tokens: 8192
KV Memory Percentage: 90.00%
Number of requests:  7500
Average Input Length (tokens): 512.0000
Average Output Length (tokens): 512.0000
Token Throughput (tokens/sec): 13240.2682
Request Throughput (req/sec): 25.8599
Total Latency (ms):  290024.3372
"""


def write_log(root: Path, name: str, text: str) -> None:
    (root / RAW).mkdir(parents=True, exist_ok=True)
    (root / RAW / name).write_text(text)


def test_log_gives_an_offline_run(tmp_path: Path) -> None:
    write_log(tmp_path, "result_512_512_7500.txt", LOG)
    write_log(tmp_path, "result_256_512_10000.txt", LOG.partition("Number of requests")[0])
    result = build_etched_trtllm_llama70b(tmp_path)
    assert rules(result) == {"no_outcome": 1}
    row = one(result.rows, load="offline")
    assert (row["output_throughput_token_per_s"], row["n_request"], row["duration_s"]) == (13240.3, 7500, 290.024)
    assert (row["weight_precision"], row["kv_precision"], row["tp"]) == ("fp8", "fp8", 8)
    assert (row["max_num_seqs"], row["chunk_size_token"], row["date"]) == (2048, 8192, "2025-07-11")


def test_missing_logs_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no log"):
        build_etched_trtllm_llama70b(tmp_path)


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("etched_trtllm_llama70b", build_etched_trtllm_llama70b)
