"""What the names and numbers of InferenceMAX's results mean; shared with the campaign of its published tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from roofcast.data.errors import SchemaError

TRUE_LENGTH: Final = 0.9
"""Mean request length over the nominal one: lengths are uniform between 0.8 and 1 times the nominal one."""

LENGTH_VARIATION: Final = round(0.2 / math.sqrt(12) / TRUE_LENGTH, 6)
"""Standard deviation of these lengths over their mean."""

REQUESTS_PER_PLACE: Final = 10
"""Requests sent for each that may be in flight: the suite's scripts ask for so many prompts."""

STATISTICS: Final = {"mean": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}
LATENCIES: Final = {"ttft_s": "ttft", "tpot_s": "tpot", "itl_s": "itl", "e2e_s": "e2el"}

MODELS: Final = {"/mnt/lustre01/models/deepseek-r1-0528-fp4-v2": "nvidia/DeepSeek-R1-0528-FP4-V2"}
"""Paths of its own machines to the models they hold."""

_ENGINES: Final = {"trt": "trtllm", "tensorrt-llm": "trtllm"}


def engine_of(framework: str) -> str:
    """Return the engine of a framework's name; what orchestrates it is left out.

    Examples
    --------
    >>> engine_of("trt"), engine_of("dynamo-sglang"), engine_of("vllm-disagg")
    ('trtllm', 'sglang', 'vllm')
    """
    name = framework.strip().lower().removeprefix("dynamo-").removeprefix("mori-").removesuffix("-disagg")
    return _ENGINES.get(name, name)


def streams_tokens(engine: str, accelerator: str) -> bool:
    """Tell whether a streamed chunk is one token; TensorRT-LLM, and SGLang on NVIDIA, were set to send 10 to 50.

    Examples
    --------
    >>> streams_tokens("sglang", "amd-mi355x-288gb"), streams_tokens("sglang", "nvidia-h200-sxm-141gb")
    (True, False)
    """
    return engine == "vllm" or (engine == "sglang" and accelerator.startswith("amd-"))


def n_decode_accelerator(total: Mapping[str, float], n: int) -> int:
    """Return how many of `n` accelerators decode in a disaggregated deployment.

    Its input throughput is given per prefill, its output throughput per decode accelerator and their sum per
    accelerator; one number of decode accelerators makes the three agree.

    Raises
    ------
    SchemaError
        If no whole number does.

    Examples
    --------
    >>> n_decode_accelerator({"tput_per_gpu": 15.0, "input_tput_per_gpu": 30.0, "output_tput_per_gpu": 10.0}, 12)
    9
    """
    both, given, taken = (total[f"{part}tput_per_gpu"] for part in ("", "input_", "output_"))
    exact = n * (both - given) / (taken - given) if taken != given else -1.0
    if not 0 < exact < n or abs(exact - round(exact)) > 0.01 or not 0 < round(exact) < n:
        raise SchemaError("tput_per_gpu", f"fits no whole number of decode accelerators among {n}, got {exact:g}")
    return round(exact)
