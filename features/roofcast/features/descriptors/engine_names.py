"""Engines: from the names in use to the engines with coefficients, and what a family has in common."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.precisions import Names
from roofcast.features.descriptors.prediction_input import factorize
from roofcast.features.queries import BoolArray, FloatArray

OTHER: Final = ENGINES[-1]

ALIASES: Final = {
    "tensorrt-llm": "trtllm", "trt-llm": "trtllm", "tensorrt": "trtllm", "trt": "trtllm", "nim": "trtllm",
    "llm-d": "vllm", "aphrodite": "vllm", "atom": "vllm", "sgl": "sglang",
    "text-generation-inference": "tgi", "huggingface-tgi": "tgi", "hf-tgi": "tgi",
    "huggingface": "transformers", "hf": "transformers", "jan": "llama.cpp",
    "ollama": "llama.cpp", "ik_llama.cpp": "llama.cpp", "llama-cpp": "llama.cpp", "llamacpp": "llama.cpp",
    "llamafile": "llama.cpp", "llama-server": "llama.cpp", "koboldcpp": "llama.cpp", "lm-studio": "llama.cpp",
    "lmstudio": "llama.cpp", "mistral.rs": "llama.cpp", "mistralrs": "llama.cpp", "mlx": "llama.cpp",
    "ds4": "llama.cpp", "mlc": "mlc-llm", "lmdeploy-turbomind": "turbomind", "neuronx": "transformers-neuronx",
}  # fmt: skip
"""Nearest engine with coefficients: by kernels and scheduler (AMD's ATOM runs vLLM's scheduler on its own kernels,
LLM-D vLLM itself), or by weights and use (engines of one stream whose checkpoints are quantised whole, MLX's too)."""

WHOLE_CHECKPOINT_ENGINES: Final = ("llama.cpp",)
"""Engines whose four-bit checkpoints are quantised whole: attention, shared layers and output head too."""

EAGER_ENGINES: Final = ("transformers", "tgis")
"""Engines that launch each kernel from the host by default; IBM's tgis left text-generation-inference before its
CUDA graphs (v1.4, 2024)."""

_EXLLAMA: Final = re.compile(r"exllama[- ]?v(?=\d)")
_WORD: Final = re.compile(r"[a-z0-9_.]+(?:-[a-z0-9_.]+)*")


def nearest_engine(name: str) -> str:
    """Return the engine in `ENGINES` whose coefficients stand for an engine; ``other`` if there is none.

    Examples
    --------
    >>> [nearest_engine(name) for name in ("ik_llama.cpp", "LM Studio", "vLLM (tenstorrent fork)", "JetStream")]
    ['llama.cpp', 'llama.cpp', 'vllm', 'other']
    """
    if name in ENGINES:
        return name
    names = {**dict(zip(ENGINES, ENGINES, strict=True)), **ALIASES}
    fork = "llama.cpp" if any(word.endswith("llama.cpp") for word in _WORD.findall(name.lower())) else OTHER
    return names.get(find_engine(name, names), fork)


def find_engine(name: str, known: Iterable[str]) -> str:
    """Return the longest of the known names with which the name, or a word of it, starts; blank if there is none.

    Examples
    --------
    >>> [find_engine(name, ("mlx", "mlx-lm", "exllama-v3")) for name in ("MLX_LM 0.30", "mlx", "ExLlamaV3", "max")]
    ['mlx-lm', 'mlx', 'exllama-v3', '']
    """
    words = _WORD.findall(_EXLLAMA.sub("exllama-v", name.lower().replace("_", "-")))
    for word in ("-".join(words), *words):
        if starts := [one for one in known if re.match(re.escape(one) + "(?![a-z0-9])", word)]:
            return max(starts, key=len)
    return ""


@dataclass(frozen=True, slots=True)
class EngineColumns:
    """Nearest engine of each row with its code in `ENGINES` and the properties of its family: shape (n_row,)."""

    name: Names
    code: FloatArray
    is_whole: BoolArray
    is_eager: BoolArray


def describe_engines(engine: Names) -> EngineColumns:
    """Return the engine columns of names in use.

    Examples
    --------
    >>> describe_engines(np.array(["ollama", "vllm"], dtype=object)).is_whole
    array([ True, False])
    """
    codes, names = factorize(engine)
    nearest = [nearest_engine(str(name)) for name in names]
    return EngineColumns(
        np.array(nearest, dtype=object)[codes],
        np.array([ENGINES.index(name) for name in nearest], dtype=float)[codes],
        np.array([name in WHOLE_CHECKPOINT_ENGINES for name in nearest], dtype=np.bool_)[codes],
        np.array([name in EAGER_ENGINES for name in nearest], dtype=np.bool_)[codes],
    )
