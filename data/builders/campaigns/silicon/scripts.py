"""Launch scripts of InferenceX: the rows that each one served, its dates, and its server settings.

Source: the public repository ``SemiAnalysisAI/InferenceX`` (Apache-2.0), the scripts under ``benchmarks/`` and
``perf-changelog.yaml``, which dates their changes. No results were read there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

LOW_LOAD: Final = 16
"""Concurrency from which SGLang's scripts poll less often."""


@dataclasses.dataclass(frozen=True)
class Launch:
    """One start of a server: nominal lengths, load, devices, and whether attention is data parallel."""

    n_input: int
    n_output: int
    concurrency: int
    n_device: int
    has_dp: bool


Value = int | Callable[[Launch], int | None] | None
"""Setting of a script: a constant, a function of the launch, or nothing."""


@dataclasses.dataclass(frozen=True)
class Script:
    """Settings of one launch script; None where the script leaves them to an engine without a fixed default.

    Parameters
    ----------
    model, systems, engine, precisions
        The rows that it served, in the names of `history.scenario_of`.
    file
        The script under ``benchmarks/``.
    kv
        Precision of the KV cache; blank if unknown.
    poll, stream, chunk, dp_wait, batch_wait, n_draft
        Settings, see the columns of `roofcast.data.measurements.schema`.
    mtp
        Whether it served rows with multi-token prediction; None for both.
    since, until
        First and last day, as ISO dates; blank if unbounded.
    """

    model: str
    systems: str
    engine: str
    precisions: str
    file: str
    kv: str = ""
    poll: Value = None
    stream: Value = None
    chunk: Value = None
    dp_wait: Value = None
    batch_wait: Value = None
    n_draft: Value = None
    mtp: bool | None = None
    since: str = ""
    until: str = ""


def _poll(run: Launch) -> int:
    return 30 if run.concurrency >= LOW_LOAD else 10


def _poll_of_8(run: Launch) -> int:
    return 10 if run.n_device == 4 else _poll(run)


def _chunk_of_8(run: Launch) -> int:
    return 8192 if run.n_device == 4 else 32768


def _two_prompts(run: Launch) -> int:
    return 2 * run.n_input


def _in_blocks(n_token: int) -> int:
    return (n_token + 64 + 63) // 64 * 64


def _prompt_and_batch(run: Launch) -> int:
    return _in_blocks(run.concurrency + run.n_input)


def _prompt_and_batch_or_8192(run: Launch) -> int:
    return max(_prompt_and_batch(run), 8192)


def _first_mtp_chunk(run: Launch) -> int:
    batch = max(run.concurrency // run.n_device, 1) if run.has_dp else run.concurrency
    return _in_blocks((_n_draft(run) + 1) * batch + round(run.n_input * 1.8))


def _mtp_chunk(share: int) -> Callable[[Launch], int]:
    def chunk(run: Launch) -> int:
        is_split = run.has_dp and run.concurrency >= share
        batch = run.concurrency // share if is_split else run.concurrency
        return _in_blocks((_n_draft(run) + 1) * batch + run.n_input)

    return chunk


def _n_draft(run: Launch) -> int:
    return 1 if run.has_dp else 3


def _delayed(run: Launch) -> int | None:
    return 40 if (run.n_input, run.n_output) == (1024, 1024) and 64 <= run.concurrency < 256 else None


def _delayed_llama(run: Launch) -> int | None:
    return 20 if (run.n_input, run.n_output) == (1024, 1024) and run.n_device < 8 else None


def _if_dp(n_step: int) -> Callable[[Launch], int | None]:
    return lambda run: n_step if run.has_dp else None


_DP = _if_dp(60)
_2026 = "2026-01-29"

SCRIPTS: Final = (
    Script("deepseek", "b200 b300", "sglang", "fp4", "dsr1_fp4_b200.sh", "fp8", _poll, 10, 16384),
    Script("deepseek", "b200 b300", "sglang", "fp8", "dsr1_fp8_b200.sh", "fp8", _poll_of_8, 30, _chunk_of_8,
           mtp=False),
    Script("deepseek", "b200", "sglang", "fp8", "dsr1_fp8_b200_mtp.sh", "fp8", _poll, 30, 16384, n_draft=2, mtp=True),
    Script("deepseek", "h200", "sglang", "fp8", "dsr1_fp8_h200.sh", "bf16", 1, 10, 32768),
    Script("deepseek", "b200 h200", "trtllm", "fp4 fp8", "dsr1_fp8_b200_trt_slurm.sh", "fp8", None, 10,
           _prompt_and_batch, _DP, mtp=False, until="2026-01-28"),
    Script("deepseek", "b200", "trtllm", "fp8", "dsr1_fp8_b200_trt.sh", "fp8", None, 10, _prompt_and_batch_or_8192,
           _DP, _delayed, mtp=False, since=_2026),
    Script("deepseek", "b200", "trtllm", "fp4", "dsr1_fp4_b200_trt.sh", "fp8", None, 10, _prompt_and_batch_or_8192,
           _DP, mtp=False, since=_2026),
    Script("deepseek", "b200 h200", "trtllm", "fp4 fp8", "dsr1_fp8_b200_trt_mtp_slurm.sh", "fp8", None, 10,
           _first_mtp_chunk, _DP, None, _n_draft, mtp=True, until="2026-01-28"),
    Script("deepseek", "b200", "trtllm", "fp4", "single_node/dsr1_fp4_b200_trt_mtp.sh", "fp8", None, 10,
           _mtp_chunk(4), _DP, None, _n_draft, mtp=True, since=_2026),
    Script("deepseek", "b200", "trtllm", "fp8", "single_node/dsr1_fp8_b200_trt_mtp.sh", "fp8", None, 10,
           _mtp_chunk(8), _DP, None, _n_draft, mtp=True, since=_2026),
    Script("gpt-oss", "b200", "trtllm", "fp4", "gptoss_fp4_b200_trt.sh", "fp8", None, 20, 20000, _if_dp(50)),
    Script("gpt-oss", "h200", "trtllm", "fp4", "gptoss_fp4_h200_trt.sh", "bf16", None, 20, 20000),
    Script("gpt-oss", "b200", "vllm", "fp4", "gptoss_fp4_b200_docker.sh", "bf16", None, 1, 8192, until="2025-12-04"),
    Script("gpt-oss", "b200", "vllm", "fp4", "gptoss_fp4_b200.sh", "fp8", None, 1, 8192, since="2025-12-05"),
    Script("gpt-oss", "h100 h200", "vllm", "fp4", "gptoss_fp4_h100.sh", "bf16", None, 1, 8192),
    Script("glm-5", "b200 b300", "sglang", "fp8", "single_node/glm5_fp8_b200.sh", "fp8", 1, 30, 32768),
    Script("glm-5", "h200", "sglang", "fp8", "single_node/glm5_fp8_h200.sh", "bf16", 1, 1),
    Script("kimi", "b200", "vllm", "fp4", "single_node/kimik2.5_fp4_b200.sh", "fp8", None, 1, until="2026-04-13"),
    Script("kimi", "b200", "vllm", "fp4", "single_node/kimik2.5_fp4_b200.sh", "fp8", None, 20, _two_prompts,
           since="2026-04-17"),
    Script("kimi", "b300", "vllm", "fp4", "single_node/kimik2.5_fp4_b300.sh", "fp8", None, 1, since="2026-04-17"),
    Script("kimi", "b200 h200", "vllm", "int4", "single_node/kimik2.5_int4_h200.sh", "bf16", None, 1),
    Script("minimax", "h100 h200", "vllm", "fp8", "single_node/minimaxm2.5_fp8_h200.sh", "bf16", None, 1,
           until="2026-03-31"),
    Script("minimax", "b200", "vllm", "fp8", "single_node/minimaxm2.5_fp8_b200.sh", "bf16", None, 1,
           until="2026-03-31"),
    Script("minimax", "b200 b300", "vllm", "fp4 fp8", "single_node/minimaxm2.5_fp8_b300.sh", "fp8", None, 20,
           _two_prompts, since="2026-04-17"),
    Script("qwen3.5", "b200", "sglang", "bf16", "single_node/qwen3.5_bf16_b200.sh", "bf16", until="2026-02-28"),
    Script("qwen3.5", "b200 b300", "sglang", "bf16", "single_node/qwen3.5_bf16_b200.sh", "bf16", _poll, 30, 32768),
    Script("qwen3.5", "b200", "sglang", "fp8", "single_node/qwen3.5_fp8_b200.sh", "fp8", _poll, 30, 32768,
           mtp=False),
    Script("qwen3.5", "b200", "sglang", "fp8", "single_node/qwen3.5_fp8_b200_mtp.sh", "fp8", _poll, 30, 32768,
           n_draft=3, mtp=True),
    Script("qwen3.5", "b300", "sglang", "fp8", "single_node/qwen3.5_fp8_b300.sh", "fp8", until="2026-04-15"),
    Script("qwen3.5", "b300", "sglang", "fp8", "single_node/qwen3.5_fp8_b300.sh", "fp8", 10, 50, 16384),
    Script("qwen3.5", "h200", "sglang", "fp8", "single_node/qwen3.5_fp8_h200.sh", "fp8", 1, 50, 16384),
    Script("qwen3.5", "b200", "sglang", "fp4", "single_node/qwen3.5_fp4_b200.sh", "fp8", 30, 30, 32768),
    Script("qwen3.5", "b300", "sglang", "fp4", "single_node/qwen3.5_fp4_b300.sh", "fp8", _poll, 30, 32768),
    Script("llama-3.1-70b", "b200 h200", "trtllm", "fp4 fp8", "70b_fp8_h200_trt_slurm.sh", "fp8", None, 10, None,
           None, _delayed_llama),
    Script("llama-3.1-70b", "b200 h100 h200", "vllm", "fp4 fp8", "70b_fp8_h200_slurm.sh", "fp8", None, 1, 8192),
)  # fmt: skip
"""Scripts with equal settings (for other chips or precisions, or at another path) are listed once."""
