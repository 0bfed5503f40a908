"""Names and conventions of InferenceMAX's results; the builder of its campaign uses them too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from roofcast.data.errors import SchemaError

MEAN_LENGTH_RATIO: Final = 0.9
"""Ratio of the mean request length to the nominal one: lengths are uniform from 0.8 to 1 times the nominal length."""

LENGTH_VARIATION: Final = round(0.2 / math.sqrt(12) / MEAN_LENGTH_RATIO, 6)
"""Coefficient of variation of the request lengths."""

REQUESTS_PER_SLOT: Final = 10
"""Requests of a run for each of its concurrent ones, as the suite's scripts set it."""

STATISTICS: Final = {"mean": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}
LATENCIES: Final = {"ttft_s": "ttft", "tpot_s": "tpot", "itl_s": "itl", "e2e_s": "e2el"}

MODELS: Final = {"/mnt/lustre01/models/deepseek-r1-0528-fp4-v2": "nvidia/DeepSeek-R1-0528-FP4-V2"}
"""Models by their path on the benchmark's machines."""

_ENGINES: Final = {"trt": "trtllm", "tensorrt-llm": "trtllm"}


def engine_of(framework: str) -> str:
    """Return the engine of a framework's name, without its orchestrator.

    Examples
    --------
    >>> engine_of("trt"), engine_of("dynamo-sglang"), engine_of("vllm-disagg")
    ('trtllm', 'sglang', 'vllm')
    """
    name = framework.strip().lower().removeprefix("dynamo-").removeprefix("mori-").removesuffix("-disagg")
    return _ENGINES.get(name, name)


def streams_tokens(engine: str, accelerator: str) -> bool:
    """Return whether each streamed chunk holds one token; TensorRT-LLM, and SGLang on NVIDIA, send 10 to 50 at once.

    Examples
    --------
    >>> streams_tokens("sglang", "amd-mi355x-288gb"), streams_tokens("sglang", "nvidia-h200-sxm-141gb")
    (True, False)
    """
    return engine == "vllm" or (engine == "sglang" and accelerator.startswith("amd-"))


def n_decode_accelerator(total: Mapping[str, float], n: int) -> int:
    """Return the number of decode accelerators among the `n` of a disaggregated deployment.

    Input throughput is published per prefill accelerator, output throughput per decode accelerator, and the total per
    accelerator; only one number of decode accelerators makes the three agree.

    Raises
    ------
    SchemaError
        If no whole number makes them agree.

    Examples
    --------
    >>> n_decode_accelerator({"tput_per_gpu": 15.0, "input_tput_per_gpu": 30.0, "output_tput_per_gpu": 10.0}, 12)
    9
    """
    both, prefill, decode = (total[f"{part}tput_per_gpu"] for part in ("", "input_", "output_"))
    exact = n * (both - prefill) / (decode - prefill) if decode != prefill else -1.0
    if not 0 < exact < n or abs(exact - round(exact)) > 0.01 or not 0 < round(exact) < n:
        raise SchemaError("tput_per_gpu", f"fits no whole number of decode accelerators among {n}, got {exact:g}")
    return round(exact)
