"""Platforms: Kubernetes resource, devices and engine images of accelerators."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from roofcast.data.errors import InputError
from roofcast.data.specs import AcceleratorSpec

REPLACE: Final = "replace-me"
"""Placeholder for the user to replace."""


@dataclass(frozen=True, slots=True)
class Platform:
    """Platform of a family of accelerators.

    - `resource`: Kubernetes resource; one unit is one accelerator.
    - `images`: Container image by engine; of the engines with artefacts.
    - `n_device`: Devices of tensor parallelism per accelerator.
    - `fp8_cache`: Name of the FP8 cache in vLLM.
    """

    resource: str
    images: Mapping[str, str]
    n_device: int = 1
    fp8_cache: str = "fp8"


NVIDIA: Final = Platform(
    "nvidia.com/gpu",
    {
        "vllm": "vllm/vllm-openai:v0.32.0",
        "sglang": "lmsysorg/sglang:v0.5.19",
        "trtllm": "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc27",
    },
)
AMD: Final = Platform(
    "amd.com/gpu",
    {
        "vllm": "rocm/vllm:rocm7.14.0_cdna_ubuntu24.04_py3.14_pytorch_2.11.0_vllm_0.23.0",
        "sglang": f"{REPLACE}/sglang-rocm",
    },
)
GAUDI: Final = Platform("habana.ai/gaudi", {"vllm": f"{REPLACE}/vllm-gaudi"}, fp8_cache="fp8_inc")
INTEL_GPU: Final = Platform("gpu.intel.com/xe", {"vllm": f"{REPLACE}/vllm-xpu"})
TPU: Final = Platform("google.com/tpu", {"vllm": f"{REPLACE}/vllm-tpu"})
TRAINIUM2: Final = Platform("aws.amazon.com/neuron", {"vllm": f"{REPLACE}/vllm-neuron"}, n_device=4)

_BY_ARCHITECTURE: Final = {
    ("AMD", "CDNA3"): AMD,
    ("AMD", "CDNA4"): AMD,
    ("Intel", "Gaudi 2"): GAUDI,
    ("Intel", "Gaudi 3"): GAUDI,
    ("Intel", "Xe2-HPG"): INTEL_GPU,
    ("AWS", "NeuronCore-v3"): TRAINIUM2,
}
_TPU: Final = ("google-tpu-v5e", "google-tpu-v6e")


def platform_of(accelerator: AcceleratorSpec) -> Platform:
    """Return the platform of an accelerator.

    Raises `InputError` if there is none: for CPUs, accelerators of several devices to an engine, and those without a
    supported engine.

    References
    ----------
    Resources: Kubernetes documentation, "Schedule GPUs" (NVIDIA, AMD); AWS Neuron 2.33, "Neuron device plugin";
    Intel Gaudi documentation, "Intel Gaudi Device Plugin for Kubernetes"; Intel GPU device plugin 0.35, README
    (``xe`` is the newer driver's, ``i915`` the older's); Google Cloud, "TPUs in GKE". Devices: AWS Neuron 2.33,
    "Best practices for training" (four logical cores on a Trainium2), and the vLLM Neuron plugin (Trainium2 and 3
    only); vLLM TPU quickstart (v5e, v6e, v7x) and Ray Serve, "TPU serving" (tensor parallelism counts chips).
    ``fp8_inc``: vLLM, ``CacheConfig.cache_dtype``. Images: vLLM "Using Docker"; SGLang "Install"; ROCm "vLLM
    inference and serving on ROCm"; TensorRT-LLM on NGC.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> platform_of(load_catalog().accelerator("nvidia-h100-sxm-80gb")).resource
    'nvidia.com/gpu'
    """
    if accelerator.vendor == "NVIDIA":
        return NVIDIA
    if accelerator.id in _TPU:
        return TPU
    try:
        return _BY_ARCHITECTURE[accelerator.vendor, accelerator.architecture]
    except KeyError:
        raise InputError(
            "deployment", f"no platform is known for {accelerator.vendor} {accelerator.name}; choose another"
        ) from None
