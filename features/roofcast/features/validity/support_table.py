"""Table of what runs where: engine, engine version, accelerator, precision of the weights, features.

Search, predictions and deployments read it through `roofcast.features.validity.engine_support`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

WIDE: Final = ("fp32", "bf16", "fp16")
ALL: Final = (*WIDE, "fp8", "int8", "fp4", "int4")
HALF: Final = ("fp32", "fp16")


@dataclass(frozen=True, slots=True)
class Support:
    """Support of an engine for a family of accelerators.

    Parameters
    ----------
    engine
        In lower case, as in the measurement table.
    families
        Vendors, vendors with an architecture, or ids of accelerators; a longer name that begins with the words of a
        family is of it.
    precisions
        Of the weights as served, by units of the accelerator or unpacked by a kernel.
    source
        Documentation, source file, issue or measurement.
    last
        Last version that has the support; blank if the current one does.
    is_searched
        Whether recommendations propose it without being asked: it is released, and an artefact can be written.
    quantises
        Whether the engine quantises 16-bit weights to FP8 while it loads them.
    """

    engine: str
    families: tuple[str, ...]
    precisions: tuple[str, ...]
    source: str
    last: str = ""
    is_searched: bool = True
    quantises: bool = False


_VLLM_TABLE: Final = 'vLLM 0.32, docs/features/quantization/README.md, "Supported Hardware"'
_SGLANG_TABLE: Final = 'SGLang 0.5, docs/advanced_features/quantization.md, "Platform Compatibility"'
_TRTLLM_TABLE: Final = 'TensorRT-LLM 1.3, docs/source/features/quantization.md, "Hardware Support Matrix"'
_MEASURED: Final = "measured in the shipped campaigns"

SUPPORT: Final[tuple[Support, ...]] = (
    Support(
        "vllm", ("NVIDIA Volta",), (*HALF, "int4"),
        f"{_VLLM_TABLE} (GPTQ); pull request 39878 takes compute capability 7.0 out of the builds after 0.19",
        last="0.19", is_searched=False,
    ),
    Support(
        "vllm", ("NVIDIA Turing",), (*HALF, "fp8", "int8", "fp4", "int4"),
        f'{_VLLM_TABLE} (Marlin, INT8); "GPU" (compute capability 7.5 or higher); issue 946 (no BF16 below 8.0)',
    ),
    Support(
        "vllm", ("NVIDIA Ampere", "NVIDIA Ada Lovelace", "NVIDIA Hopper", "NVIDIA Blackwell"), ALL,
        f'{_VLLM_TABLE} (Marlin serves FP8 and FP4 weights without units for them); "FP8 W8A8", online quantization',
        quantises=True,
    ),
    Support(
        "vllm", ("AMD CDNA3", "AMD CDNA4"), (*WIDE, "fp8", "fp4", "int4"),
        f"{_VLLM_TABLE} (FP8); docs/features/quantization/quark.md (MXFP4); vllm/model_executor/layers/quantization/"
        "compressed_tensors (4-bit experts by Triton)",
        quantises=True,
    ),
    Support(
        "vllm", ("AMD CDNA2",), (*WIDE, "int4"), f'"GPU" (MI200s, gfx90a); {_MEASURED}', is_searched=False
    ),
    Support(
        "vllm", ("AMD RDNA 3", "AMD RDNA3", "AMD RDNA 3.5", "AMD RDNA 4"), (*WIDE, "fp8", "int4", "fp4"),
        'vLLM 0.32, "GPU" (Radeon RX 7900 and 9000, Ryzen AI 300)', is_searched=False,
    ),
    Support(
        "vllm", ("Intel Gaudi 2", "Intel Gaudi 3"), ("bf16", "fp16", "fp8", "int4"),
        'vLLM-Gaudi, "Supported Features" (FP8 by INC, GPTQ and AWQ)',
    ),
    Support(
        "vllm", ("Intel Xe2-HPG",), (*WIDE, "fp8", "int8", "fp4", "int4"),
        f'vLLM 0.32, "GPU" (Intel Arc); {_MEASURED} (INT8, MXFP4 and INT4)',
    ),
    Support(
        "vllm", ("Intel Xe-HPG", "Intel Xe-HPC"), (*WIDE, "fp8", "int4"),
        f'vLLM 0.32, "GPU" (Intel Data Center GPU); {_MEASURED}', is_searched=False,
    ),
    Support(
        "vllm", ("AWS NeuronCore-v3",), ("fp32", "bf16", "fp16", "fp8", "int8"),
        "vLLM Neuron plugin (Trainium 2 and later)",
    ),
    Support(
        "vllm", ("AWS NeuronCore-v2", "AWS NeuronCore-v4"), ("fp32", "bf16", "fp16", "fp8", "int8"),
        'vLLM 0.9, "AWS Neuron" (Inferentia 2, Trainium 1); vLLM Neuron plugin (Trainium 3)', is_searched=False,
    ),
    Support("vllm", ("google-tpu-v5e",), ("bf16", "fp16", "int8"), "vLLM TPU quickstart (v5e, v6e, v7x)"),
    Support("vllm", ("google-tpu-v6e",), ("bf16", "fp16", "int8", "fp8"), "vLLM TPU quickstart (v5e, v6e, v7x)"),
    Support(
        "vllm", ("Google TPU",), ("bf16", "fp16", "int8", "fp8"),
        f"vLLM TPU, recommended models and features; {_MEASURED}", is_searched=False,
    ),
    Support(
        "vllm", ("Huawei Da Vinci",), ("bf16", "fp16", "int8", "int4"), f"vLLM Ascend; {_MEASURED}",
        is_searched=False,
    ),
    Support(
        "vllm", ("Tenstorrent",), ("bf16", "fp16", "fp8"), f"Tenstorrent's fork of vLLM; {_MEASURED}",
        is_searched=False,
    ),
    Support("vllm", ("Apple",), (*WIDE, "int8", "int4"), 'vLLM 0.32, "GPU", Apple Silicon', is_searched=False),
    Support(
        "vllm", ("AMD Zen 4", "AMD Zen 5", "AWS Neoverse V1", "AWS Neoverse V2", "Intel Golden Cove + AMX",
                 "Intel Raptor Cove + AMX", "Intel Redwood Cove + AMX"),
        (*WIDE, "int8", "int4"), f'vLLM 0.32, "CPU"; {_VLLM_TABLE}', is_searched=False,
    ),
    Support(
        "sglang", ("NVIDIA Turing",), (*HALF, "int8", "int4"), 'SGLang, issue 6006 ("sm75 EOL")', last="0.4",
        is_searched=False,
    ),
    Support(
        "sglang", ("NVIDIA Ampere", "NVIDIA Ada Lovelace", "NVIDIA Hopper", "NVIDIA Blackwell"), ALL,
        f"{_SGLANG_TABLE}; issue 24224 (no kernels below compute capability 8.0); {_MEASURED}", quantises=True,
    ),
    Support(
        "sglang", ("AMD CDNA3", "AMD CDNA4"), (*WIDE, "fp8", "int8", "fp4", "int4"), _SGLANG_TABLE, quantises=True
    ),
    Support(
        "sglang", ("Intel Xe2-HPG", "Intel Xe-HPC", "Google TPU", "Huawei Da Vinci", "Intel Golden Cove + AMX",
                   "Intel Raptor Cove + AMX", "Intel Redwood Cove + AMX", "Apple"),
        (*WIDE, "fp8", "int8", "int4"),
        "SGLang 0.5, docs/platforms (xpu.md, tpu.md, ascend, cpu_server.md, apple_metal.md)", is_searched=False,
    ),
    Support(
        "trtllm", ("NVIDIA Volta",), (*HALF, "int8", "int4"),
        "TensorRT-LLM, pull request 2389 (Volta is removed after 0.14)", last="0.14", is_searched=False,
    ),
    Support(
        "trtllm", ("NVIDIA Turing",), (*HALF, "int8", "int4"),
        "TensorRT-LLM 0.18.2, support matrix (Ampere and later)", last="0.17", is_searched=False,
    ),
    Support("trtllm", ("NVIDIA Ampere",), (*WIDE, "int8", "int4"), "TensorRT-LLM 0.18.2, support matrix"),
    Support(
        "trtllm", ("NVIDIA Ada Lovelace",), (*WIDE, "fp8", "int8", "int4"), "TensorRT-LLM 0.18.2, support matrix"
    ),
    Support(
        "trtllm", ("NVIDIA Hopper",), ALL,
        f"TensorRT-LLM 0.18.2, support matrix; {_MEASURED} (MXFP4 of gpt-oss)",
    ),
    Support("trtllm", ("NVIDIA Blackwell",), (*WIDE, "fp8", "fp4", "int4"), _TRTLLM_TABLE),
    Support("llama.cpp", ("",), ALL, 'llama.cpp, README, "Supported backends"', is_searched=False),
    Support("tgi", ("NVIDIA", "AMD", "Intel", "AWS", "Google"), ALL, 'TGI, "Supported Hardware"', is_searched=False),
    Support("tgis", ("NVIDIA",), (*WIDE, "int8", "int4"), f"IBM's fork of TGI; {_MEASURED}", is_searched=False),
    Support(
        "lmdeploy", ("NVIDIA", "Huawei"), ALL, 'LMDeploy, README, "Supported Models" and platforms', is_searched=False
    ),
    Support("turbomind", ("NVIDIA",), ALL, "LMDeploy, TurboMind (CUDA)", is_searched=False),
    Support("deepspeed", ("NVIDIA", "AMD", "Intel"), ALL, 'DeepSpeed, "Accelerator Setup Guide"', is_searched=False),
    Support("deepspeed-mii", ("NVIDIA",), (*WIDE, "int8"), "DeepSpeed-MII, README", is_searched=False),
    Support("mlc-llm", ("NVIDIA", "AMD", "Intel", "Apple"), ALL, 'MLC LLM, README, "Platforms"', is_searched=False),
    Support("fastertransformer", ("NVIDIA",), (*WIDE, "fp8", "int8"), "FasterTransformer, README", is_searched=False),
    Support(
        "transformers-neuronx", ("AWS NeuronCore-v2", "AWS NeuronCore-v3"), (*WIDE, "fp8", "int8"),
        f"AWS Neuron 2.21, transformers-neuronx; {_MEASURED}", is_searched=False,
    ),
    Support(
        "optimum-habana", ("Intel Gaudi 2", "Intel Gaudi 3"), ("fp32", "bf16", "fp8", "int4"),
        f"Optimum for Intel Gaudi, README; {_MEASURED}", is_searched=False,
    ),
    Support("transformers", ("",), ALL, "Transformers, quantization overview", is_searched=False),
)  # fmt: skip
"""Rows of the engines whose hardware is documented; any other engine is admitted on every accelerator."""

OTHER_ENGINES: Final = (
    "atom", "ds4", "exllama", "exllama-v2", "gpullama3.java", "ik_llama.cpp", "llmboost", "mistral.rs", "mlx-lm",
    "mlx-swift-lm", "ollama", "onnxruntime-genai", "other", "pegainfer", "vllm-mlx",
)  # fmt: skip
"""Engines of the shipped campaigns without rows; `other` is for an engine that is not listed."""

NEWEST: Final[Mapping[str, str]] = {"NVIDIA": "Blackwell"}
"""Architecture whose support one of the vendor has that the shipped catalogue does not know."""

NO_SPECULATION_ENGINES: Final = ("trtllm",)
"""Engines whose command line has no speculative decoding: it needs a configuration file.

References
----------
TensorRT-LLM 1.3, ``tensorrt_llm/commands/serve.py``; "Speculative Decoding".
"""
