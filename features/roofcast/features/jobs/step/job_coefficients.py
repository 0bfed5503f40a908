"""Physical coefficients of the training estimate: prior, unit and source of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from roofcast.features.engine.coefficients import Prior
from roofcast.features.queries import FloatArray

_TABLES: Final = "kernel tables of aiconfigurator-core 0.12.0 have forward products alone; see docs/TRAINING.md"
_JUDGEMENT: Final = "judgement"
_RUNS: Final = "judgement, with training runs of many stacks in view; see docs/TRAINING.md"
_KORTHIKANTI: Final = "V. Korthikanti et al., 2022, section 4: exact for Megatron-LM"
_SHAH: Final = "J. Shah et al., FlashAttention-3, 2024: FlashAttention-2 reaches 35 % of the peak on H100"
_ANTHONY: Final = (
    "Q. Anthony et al., The Case for Co-Designing Model Architectures with Hardware, 2024, names it; size: runs"
)
_FLASH: Final = (
    "T. Dao, FlashAttention-2, 2023, section 4.1: five products backward for two forward; efficiency: runs"
)


def _prior(median: float, log_sd: float, unit: str, meaning: str, source: str, *, is_share: bool = False) -> Prior:
    return Prior(median, log_sd, 0.0, unit, meaning, source, is_share=is_share)


TRAINING_PRIORS: Final[dict[str, Prior]] = {
    "gemm_ratio": _prior(1.0, 0.04, "1", "time of dense products relative to the kernel tables", _TABLES),
    "backward_ratio": _prior(1.15, 0.03, "1", "time of a backward product relative to a forward one of the same "
                             "shape", _RUNS),
    "attention_ratio": _prior(1.1, 0.08, "1", "time of attention relative to the kernel tables", _TABLES),
    "attention_backward_ratio": _prior(3.0, 0.2, "1", "time of backward attention over forward", _FLASH),
    "portable_attention_ratio": _prior(1.8, 0.2, "1", "time of attention without the kernels of Hopper and later "
                                       "relative to with them", _SHAH),
    "misaligned_ratio": _prior(6.0, 0.4, "1", "time of unfused attention whose head width is no multiple of eight",
                               _ANTHONY),
    "expert_ratio": _prior(1.3, 0.3, "1", "time of grouped products of experts relative to dense products", _RUNS),
    "dispatch_pass": _prior(8.0, 0.5, "pass", "passes over the hidden vector of each token-expert pair, forward: "
                            "permutation, activation, weighting", _JUDGEMENT),
    "linear_ratio": _prior(6.0, 0.7, "1", "passes over the mixer's widths in a layer of linear attention, "
                           "relative to those of other layers", _JUDGEMENT),
    "elementwise_ratio": _prior(1.2, 0.3, "1", "time of norms, residuals, rotations and activations over that of "
                                "their bytes at peak bandwidth", _JUDGEMENT),
    "eager_ratio": _prior(2.0, 0.3, "1", "the same without fused kernels relative to fused ones", _JUDGEMENT),
    "eager_score_ratio": _prior(6.0, 0.4, "1", "time of stored attention scores without a fused kernel relative to "
                                "Megatron-LM's fused softmax", _RUNS),
    "eight_bit_ratio": _prior(0.9, 0.15, "1", "time of 8- and 4-bit products relative to the kernel tables",
                              _RUNS),
    "cast_pass": _prior(2.0, 0.5, "pass", "passes over the operands of an 8- or 4-bit product to scale and "
                        "convert them", _JUDGEMENT),
    "floor_s": _prior(1.5e-3, 0.6, "s", "least time of a layer for one micro-batch, forward and backward: launches "
                      "from the host", _RUNS),
    "expert_floor_s": _prior(1e-4, 0.7, "s", "least time of an expert for one micro-batch, forward and backward, "
                             "where a loop launches each", _JUDGEMENT),
    "tp_exposed": _prior(0.6, 0.3, "1", "share of tensor-parallel collectives that does not overlap", _RUNS,
                         is_share=True),
    "cp_exposed": _prior(0.5, 0.4, "1", "share of context-parallel transfers that does not overlap", _JUDGEMENT,
                         is_share=True),
    "ep_exposed": _prior(0.8, 0.3, "1", "share of expert-parallel transfers that does not overlap", _RUNS,
                         is_share=True),
    "dp_exposed": _prior(0.3, 0.4, "1", "share of data-parallel collectives that does not overlap although there "
                         "is time", _RUNS, is_share=True),
    "pp_exposed": _prior(0.7, 0.4, "1", "share of the messages between pipeline stages that does not overlap",
                         _JUDGEMENT, is_share=True),
    "network_ratio": _prior(0.7, 0.3, "1", "share of the network's nominal bandwidth that collectives achieve",
                            _RUNS, is_share=True),
    "network_step_s": _prior(10e-6, 0.7, "s", "latency of one step of a collective between nodes", _RUNS),
    "tensor_step_s": _prior(200e-6, 0.7, "s", "latency of one step between nodes of a tensor-parallel collective, "
                            "behind which other kernels run", _RUNS),
    "all_to_all_ratio": _prior(1.5, 0.4, "1", "time of all-to-all relative to the kernel tables, for uneven "
                               "traffic", _JUDGEMENT),
    "optimizer_ratio": _prior(1.5, 0.4, "1", "time of the optimizer over that of its bytes at peak bandwidth",
                              _JUDGEMENT),
    "step_s": _prior(30e-3, 0.7, "s", "time of a step outside the model: data, logging, gradient norm", _RUNS),
    "straggler": _prior(0.005, 0.7, "1", "added time for each doubling of the accelerators beyond eight", _RUNS),
    "dequantise_ratio": _prior(3.0, 0.5, "1", "time to unpack quantised weights over that of their bytes",
                               _JUDGEMENT),
    "offload_exposed": _prior(0.7, 0.4, "1", "share of transfers to the host that does not overlap", _JUDGEMENT,
                              is_share=True),
    "activation_ratio": _prior(1.0, 0.15, "1", "kept activations relative to their formula", _KORTHIKANTI),
    "selective_ratio": _prior(0.4, 0.3, "1", "share of activations that selective recomputation by operators keeps",
                              _RUNS, is_share=True),
    "module_ratio": _prior(0.65, 0.15, "1", "share of activations that selective recomputation by modules keeps: "
                           "without norms and activations", _JUDGEMENT, is_share=True),
    "logit_byte": _prior(12.0, 0.2, "byte", "peak for each logit: 16 and 32 bits, and their gradients", _RUNS),
    "fragment_ratio": _prior(0.06, 0.7, "1", "memory that the allocator reserves beyond allocated", _JUDGEMENT),
    "workspace_byte": _prior(0.5e9, 0.7, "byte", "buffers of kernels and collectives", _JUDGEMENT),
    "context_byte": _prior(1.5e9, 0.5, "byte", "memory on the device outside the allocator: driver context, "
                           "communicators", _JUDGEMENT),
}  # fmt: skip

_SEMIANALYSIS: Final = "SemiAnalysis, MI300X vs H100 vs H200 Benchmark: Training, 2024: 620 of 1307 TFLOP/s in BF16"
_JIA: Final = (
    "Z. Jia et al., Dissecting the NVIDIA Volta GPU Architecture, 2018: 83 of 125 TFLOP/s at sustained clocks"
)

FAMILY_PRIORS: Final[dict[str, Prior]] = {
    "Volta": _prior(1.15, 0.12, "1", "time of products relative to other families", _JIA),
    "Ampere": _prior(1.0, 0.08, "1", "time of products relative to other families", _TABLES),
    "Hopper": _prior(1.0, 0.08, "1", "time of products relative to other families", _TABLES),
    "Ada Lovelace": _prior(1.0, 0.12, "1", "time of products relative to other families", _TABLES),
    "Blackwell": _prior(1.0, 0.12, "1", "time of products relative to other families", _TABLES),
    "CDNA3": _prior(1.5, 0.2, "1", "time of products relative to other families", _SEMIANALYSIS),
    "CDNA4": _prior(1.25, 0.2, "1", "time of products relative to other families", _JUDGEMENT),
    "TPU": _prior(1.0, 0.15, "1", "time of products relative to other families", _JUDGEMENT),
    "Gaudi": _prior(1.0, 0.2, "1", "time of products relative to other families", _JUDGEMENT),
    "Trainium": _prior(1.2, 0.2, "1", "time of products relative to other families", _JUDGEMENT),
    "other": _prior(1.0, 0.2, "1", "time of products relative to other families", _JUDGEMENT),
}
"""Ratios by family of accelerators, see `family_code`."""

FRAMEWORK_PRIORS: Final[dict[str, Prior]] = {
    name: _prior(1.0, log_sd, "1", "time of a layer relative to Megatron-LM's kernels", _JUDGEMENT)
    for name, log_sd in (
        ("megatron", 0.04), ("nemo", 0.04), ("megatron-deepspeed", 0.1), ("nanotron", 0.1), ("fsdp", 0.1),
        ("torchtitan", 0.1), ("deepspeed", 0.1), ("transformers", 0.1), ("torchtune", 0.1), ("unsloth", 0.1),
        ("nanogpt", 0.1), ("jax", 0.1), ("neuron", 0.1),
    )
}  # fmt: skip
"""Ratios by family of frameworks, in the order of `roofcast.features.jobs.frameworks.FRAMEWORKS`."""

TRAINING_NAMES: Final = (*TRAINING_PRIORS, *FAMILY_PRIORS, *FRAMEWORK_PRIORS)
MEMORY_NAMES: Final = (
    "activation_ratio", "selective_ratio", "module_ratio", "logit_byte", "fragment_ratio", "workspace_byte",
    "context_byte",
)  # fmt: skip
"""Coefficients of memory; the others are of time."""

_PRIORS: Final = {**TRAINING_PRIORS, **FAMILY_PRIORS, **FRAMEWORK_PRIORS}
_INDEX: Final = {name: i for i, name in enumerate(TRAINING_NAMES)}


@dataclass(frozen=True, slots=True, eq=False)
class StepCoefficients:
    """Natural logarithms of the coefficients: shape (n_coefficient,), in the order of `TRAINING_NAMES`.

    A learner fits ``(logs - log(median)) / log_sd`` under a standard normal prior, see `from_standard`.
    """

    logs: FloatArray

    def value(self, name: str) -> float:
        """Return a coefficient in its unit.

        Examples
        --------
        >>> DEFAULT_TRAINING_COEFFICIENTS.value("attention_backward_ratio")
        3.0
        """
        prior = _PRIORS[name]
        value = float(np.exp(self.logs[_INDEX[name]]).round(12))
        return min(value, 1.0) if prior.is_share else value

    def family_ratio(self, code: FloatArray) -> FloatArray:
        """Return the ratio of each row's family of accelerators, by `family_code`."""
        return np.asarray(np.exp(self.logs[len(TRAINING_PRIORS) + code.astype(np.intp)]))

    def framework_ratio(self, code: FloatArray) -> FloatArray:
        """Return the ratio of each row's family of frameworks, by its index in `FRAMEWORK_PRIORS`."""
        return np.asarray(np.exp(self.logs[len(TRAINING_PRIORS) + len(FAMILY_PRIORS) + code.astype(np.intp)]))

    def __eq__(self, other: object) -> bool:
        """Return whether all values are equal."""
        if not isinstance(other, StepCoefficients):
            return NotImplemented
        return np.array_equal(self.logs, other.logs)

    __hash__ = None  # type: ignore[assignment]

    def with_values(self, **values: float) -> StepCoefficients:
        """Return a copy with these values, in their units.

        Examples
        --------
        >>> DEFAULT_TRAINING_COEFFICIENTS.with_values(tp_exposed=0.25).value("tp_exposed")
        0.25
        """
        logs = self.logs.copy()
        for name, value in values.items():
            logs[_INDEX[name]] = np.log(value)
        return StepCoefficients(logs)


def family_code(architecture: str) -> float:
    """Return the index in `FAMILY_PRIORS` of an accelerator's architecture.

    Examples
    --------
    >>> list(FAMILY_PRIORS)[int(family_code("Blackwell Ultra"))], list(FAMILY_PRIORS)[int(family_code("Gaudi 2"))]
    ('Blackwell', 'Gaudi')
    """
    names = list(FAMILY_PRIORS)
    return float(next((i for i, name in enumerate(names) if architecture.startswith(name)), len(names) - 1))


NEW_ATTENTION: Final = tuple(family_code(name) for name in ("Hopper", "Blackwell"))
"""Codes of families with attention kernels that older libraries do not use."""


def from_standard(x: FloatArray) -> StepCoefficients:
    """Return the coefficients at `x` prior standard deviations from the prior medians: shape (n_coefficient,).

    Examples
    --------
    >>> from_standard(np.zeros(len(TRAINING_NAMES))) == DEFAULT_TRAINING_COEFFICIENTS
    True
    """
    priors = _PRIORS.values()
    return StepCoefficients(np.log([p.median for p in priors]) + x * np.array([p.log_sd for p in priors]))


DEFAULT_TRAINING_COEFFICIENTS: Final = from_standard(np.zeros(len(TRAINING_NAMES)))
