"""Corrections of empty or wrong cells of the collected tables, with sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Row = dict[str, str]

_APPLE_FP16: Final = "https://github.com/philipturner/metal-benchmarks README (fp16 and fp32 at one rate)"
_APPLE_NOTE: Final = "GPU; fp16 at the rate of fp32; no scale-up fabric, so link = 40 Gbit/s USB4, both directions"
_AMX: Final = "https://en.wikipedia.org/wiki/Advanced_Matrix_Extensions (1024 bf16, 2048 int8 operations per clock)"
_ARM: Final = "Arm Neoverse {} Software Optimization Guide (four 128-bit pipes)"
_FITTED: Final = (
    "one socket with 64 GiB on each channel; {}, at the base clock, which turbo may exceed; link = PCIe 5; "
    "cores, clock and last cache are the maker's, not re-read here"
)


def _apple(peak: str, note: str = _APPLE_NOTE) -> Row:
    return {
        "peak_fp16_tflop_per_s": peak,
        "link": "usb4",
        "link_bandwidth_gb_per_s": "10",
        "link_domain_size": "1",
        "source": _APPLE_FP16,
        "note": note,
    }


def _socket(name: str, n_channel: int, cache_mib: str, source: str, formula: str, **peaks: str) -> Row:
    return {
        "name": name,
        "memory_gib": str(64 * n_channel),
        **{f"peak_{precision}_tflop_per_s": peak for precision, peak in peaks.items()},
        "l2_mib": cache_mib,
        "link": "pcie5",
        "link_bandwidth_gb_per_s": "128",
        "link_domain_size": "1",
        "source": source,
        "note": _FITTED.format(formula),
    }


ACCELERATOR_REPAIRS: Final[Mapping[str, Row]] = {
    "nvidia-gb10-dgx-spark": {
        "peak_bf16_tflop_per_s": "118.8",
        "peak_fp16_tflop_per_s": "118.8",
        "peak_fp8_tflop_per_s": "237.7",
        "link": "connectx-7",
        "link_bandwidth_gb_per_s": "50",
        "source": "github NVIDIA/cudnn-frontend pull 597 (1024 FLOP per clock and SM for compute capability 12.x)",
        "note": "bf16 = 48 SM x 1024 FLOP x 2.418 GHz, fp8 twice that, fp4 half of the advertised sparse rate; "
        "published figures for bf16 range from 62.5 to 125; link = 200 Gbit/s, both directions",
    },
    "nvidia-h100-sxm-96gb": {
        "name": "H100 SXM5 96GB HBM2e",
        "peak_fp32_tflop_per_s": "66.9", "peak_tf32_tflop_per_s": "494.7", "peak_bf16_tflop_per_s": "989.4",
        "peak_fp16_tflop_per_s": "989.4", "peak_fp8_tflop_per_s": "1978.9", "peak_int8_tflop_per_s": "1978.9",
        "tdp_w": "500",
        "source": "peaks of nvidia-h100-sxm-80gb, the same chip, as the report itself takes them",
        "note": "one operator's part: 96 GB of HBM2e at 2.4 TB/s, power limit 500 W (700 W possible); its own peaks "
        "are not published and lie between those of SXM and NVL, so these bound them from above",
    },
    "nvidia-rtx-5060-ti-16gb": {"link": "pcie5 x8"},
    "nvidia-jetson-agx-orin-64gb": {
        "peak_fp16_tflop_per_s": "42.5",
        "link": "pcie4 x8",
        "link_bandwidth_gb_per_s": "32",
        "source": "ratio of Ampere tensor cores (fp16 is half of int8)",
        "note": "the advertised 275 TOPS are sparse int8 with the DLA; the GPU does 85 dense, fp16 half of it",
    },
    "nvidia-jetson-agx-thor-128gb": {
        "peak_bf16_tflop_per_s": "258.75",
        "peak_fp16_tflop_per_s": "258.75",
        "link": "pcie5 x8",
        "link_bandwidth_gb_per_s": "64",
        "source": "ratio of Blackwell tensor cores (bf16 is half of fp8)",
        "note": "the advertised 2070 TFLOP/s in fp4 are sparse; 1035 dense, fp8 half and bf16 a quarter of it",
    },
    "amd-mi250-128gb": {
        "link_bandwidth_gb_per_s": "600",
        "source": "https://rocm.docs.amd.com MI250 microarchitecture (50 GB/s per link and direction)",
        "note": "one module is two devices of 64 GiB; int8 at the rate of fp16; link = 6 links to other modules x "
        "100 GB/s, both directions; four modules to a node",
    },
    "amd-strix-halo-128gb": {
        "link": "pcie4",
        "link_bandwidth_gb_per_s": "64",
        "note": "fp16 = 512 FLOP per clock and CU x 40 CU x 2.9 GHz; no scale-up fabric, so link = PCIe 4 x16",
    },
    "intel-max-1550-128gb": {
        "link": "pcie5",
        "link_bandwidth_gb_per_s": "128",
        "note": "two stacks to a card; a GEMM measured on Aurora reached 273 TFLOP/s in bf16; link = PCIe as a lower "
        "bound, the cards also have Xe Link",
    },
    "aws-inferentia1": {
        "link": "neuronlink-v1",
        "link_bandwidth_gb_per_s": "34.4",
        "source": "aws-neuron/aws-neuron-sdk about-neuron/arch/neuron-hardware/inf1-arch.rst (32 GiB/s per chip)",
        "note": "memory 50 GiB/s = 53.7 GB/s; link 32 GiB/s, direction not stated",
    },
    "aws-trainium3": {
        "link_domain_size": "144",
        "source": "aws-neuron/aws-neuron-sdk about-neuron/arch/neuron-hardware/trn3-arch.rst"
        "@6e694cbbfa4284d68096226c9c0864c5c3f30f97",
        "note": "fp8 and fp4 are MXFP8 and MXFP4, at one rate; link domain of the Gen2 UltraServer, 64 in Gen1",
    },
    "apple-m1-8gb": _apple("2.6", f"{_APPLE_NOTE}; fp32 of the 8-core GPU"),
    "apple-m1-max-64gb": _apple("10.4"),
    "apple-m2-ultra-192gb": _apple("27.2"),
    "apple-m3-max-64gb": _apple("14.2"),
    "intel-xeon-4th-gen-sapphire-rapids": _socket(
        "Xeon Platinum 8480+", 8, "105", f"Intel ARK 8480+ (56 cores, 2.0 GHz); {_AMX}",
        "peak = 56 cores x 2.0 GHz x 64 (fp32), 1024 (bf16), 2048 (int8)", fp32="7.17", bf16="114.7", int8="229.4",
    ),
    "intel-xeon-5th-gen-emerald-rapids": _socket(
        "Xeon Platinum 8592+", 8, "320", _AMX, "peak = 64 cores x 1.9 GHz x 64 (fp32), 1024 (bf16), 2048 (int8)",
        fp32="7.78", bf16="124.5", int8="249",
    ),
    "intel-xeon-6-granite-rapids": _socket(
        "Xeon 6980P", 12, "504", f"Intel ARK 6980P (128 cores, 2.0 GHz); {_AMX}",
        "peak = 128 cores x 2.0 GHz x 64 (fp32), 1024 (bf16, fp16), 2048 (int8)",
        fp32="16.4", bf16="262.1", fp16="262.1", int8="524.3",
    ),
    "amd-epyc-4th-gen-genoa": _socket(
        "EPYC 9654", 12, "384", "AMD EPYC 9654 product page (96 cores, 2.4 GHz); two 256-bit FMA pipes (Zen 4)",
        "peak = 96 cores x 2.4 GHz x 32; bf16 dot products, not listed, may be up to twice as fast", fp32="7.37",
    ),
    "amd-epyc-5th-gen-turin": _socket(
        "EPYC 9755", 12, "512", "AMD EPYC 9755 product page (128 cores, 2.7 GHz); two 512-bit FMA pipes (Zen 5), "
        "http://numberworld.org/blogs/2024_8_7_zen5_avx512_teardown",
        "peak = 128 cores x 2.7 GHz x 64; bf16 dot products, not listed, may be up to twice as fast", fp32="22.1",
    ),
    "aws-graviton3": _socket(
        "Graviton3", 8, "32", _ARM.format("V1"), "peak = 64 cores x 2.6 GHz x 32 (fp32), 64 (fp16), 128 (bf16)",
        fp32="5.32", fp16="10.65", bf16="21.3",
    ),
    "aws-graviton4": _socket(
        "Graviton4", 12, "36",
        f"{_ARM.format('V2')}; https://chipsandcheese.com/2024/07/22/arms-neoverse-v2-in-awss-graviton-4/",
        "peak = 96 cores x 2.8 GHz x 32 (fp32), 64 (fp16), 128 (bf16)", fp32="8.6", fp16="17.2", bf16="34.4",
    ),
}  # fmt: skip
"""Corrected cells by accelerator; a note replaces the collected one, a source is appended."""

_SPARSE_61: Final = {"n_sparse_layer": "61", "sparse_top_k": "2048"}

MODEL_REPAIRS: Final[Mapping[str, Row]] = {
    **dict.fromkeys(
        ("deepseek-ai/DeepSeek-Math-V2", "deepseek-ai/DeepSeek-V3.2", "deepseek-ai/DeepSeek-V3.2-Exp"), _SPARSE_61
    ),
    "zai-org/GLM-5": {"n_sparse_layer": "78", "sparse_top_k": "2048"},
    "google/gemma-4-E2B-it": {"n_param_lookup": "2348810240"},
    "google/gemma-4-E4B-it": {"n_param_lookup": "2818572288"},
    "google/gemma-4-26B-A4B-it": {
        "intermediate_size": "",
        "n_shared_experts": "1",
        "shared_expert_intermediate_size": "2112",
    },
    "moonshotai/Kimi-K2-Instruct": {"torch_dtype": "bfloat16 (FP8 checkpoint)"},
    "inclusionAI/LLaDA2.1-flash": {
        "intermediate_size": "9216",
        "n_params_total": "102889697280",
        "n_params_active": "6152269824",
        "note": "dims of LLaDA2.0-flash; dense width 9216 inferred: with it the count is the published one but for "
        "7,936 router biases",
    },
}
"""Corrected cells by model; their names are columns of the collected table, or columns that it lacks.

Sparse attention: ``index_topk`` and ``num_hidden_layers`` of the config that the row's source names, every layer of
which has an indexer. Embedding look-ups: layers x 262,144 words x 256 numbers, as the note of the row says. The dense
MLP in expert layers of Gemma 4 (``enable_moe_block``, ``intermediate_size`` 2112) runs for every token.
"""

OFFER_REPAIRS: Final[Mapping[tuple[str, ...], Row]] = {
    ("vultr", "global", "NVIDIA GH200", "on_demand"): {"accelerator": "nvidia-gh200-96gb"},
}
"""Corrected cells by provider, region, instance type and pricing, from the file that the row's source names: the part
by its memory (96 GB)."""

OFFER_DUPLICATES: Final = frozenset({("vultr", "global", "NVIDIA L40S", "on_demand")})
"""Offers that a newer list has under another name, by provider, region, instance type and pricing."""

DIFFERENCES: Final = (
    ("tied embedding stored twice", "the published count holds the tied embedding twice"),
    ("MTP layer", "the published count holds the multi-token-prediction layer"),
    ("causal-mask", "the published count holds the buffers of the causal mask"),
    ("tower and MTP", "the published count holds the vision tower and the multi-token-prediction module"),
    ("tower", "the published count holds the vision or audio tower"),
    ("MTP module", "the published count holds the multi-token-prediction module"),
    ("rounded", "the published figure is rounded"),
)
"""Reason for another published parameter count, by text of the collected check; the first match is used."""
