"""Training hardware of accelerator specs: peaks, kernels and links."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.data.specs import AcceleratorSpec
from roofcast.features.descriptors.host_settings import bus_byte_per_s
from roofcast.features.descriptors.precisions import peak_flop_per_s
from roofcast.features.descriptors.prediction_input import PredictionInput, number_column
from roofcast.features.engine.kernels.kernel_coefficients import efficiency_of, family_of
from roofcast.features.jobs.run_columns import JobHardware
from roofcast.features.jobs.step.job_coefficients import family_code
from roofcast.features.queries import FloatArray

HOST_SIZE: Final = 8.0
"""Accelerators of a host where they are unknown."""


def used_on_host(
    n: FloatArray | float, n_node: FloatArray | float, per_node: FloatArray | float
) -> npt.NDArray[np.float64]:
    """Return the accelerators of a host that a run uses, NaN being unknown.

    Examples
    --------
    >>> used_on_host(np.array([1.0, 64.0, 64.0]), np.array([np.nan, np.nan, 16.0]), np.nan)
    array([1., 8., 4.])
    """
    usual = np.where(np.isnan(n_node), HOST_SIZE, np.ceil(np.divide(n, n_node)))
    return np.minimum(n, np.where(np.isnan(per_node), usual, per_node))


NETWORK_BYTE_PER_S: Final = {
    "Volta": 12.5e9, "Turing": 1.25e9, "Ampere": 25e9, "Hopper": 50e9, "Blackwell": 50e9, "Blackwell Ultra": 100e9,
    "CDNA3": 50e9, "CDNA4": 50e9, "Gaudi 2": 37.5e9, "Gaudi 3": 75e9, "Trainium": 6.25e9,
}  # fmt: skip
"""Network of one accelerator by architecture: one port of DGX-1, A100, H100, B200 (400 Gbit/s) and B300 (800 Gbit/s);
Gaudi's outward Ethernet ports, and 800 Gbit/s for the 16 devices of trn1.32xlarge."""

BUS_NETWORK_BYTE_PER_S: Final = 3.125e9
"""Network of one accelerator without a scale-up fabric: 200 Gbit/s for a host of eight."""

WIDE: Final = ("fp32", "tf32")
"""Precisions of products whose operands, and activations, have 32 bits."""


def build_hardware(specs: Sequence[AcceleratorSpec], precisions: Sequence[str]) -> JobHardware:
    """Return the hardware of specs that multiply in these precisions: arrays of shape (n_spec,).

    Notes
    -----
    Products of 8 and 4 bits have the sustained efficiency of their kernel tables, with launch and tiles of 16-bit
    ones: the tables scale activations in the product, which training does in kernels of its own.
    """
    ids = [spec.id for spec in specs]
    families = [family_of(spec.id, spec.architecture) for spec in specs]
    n = len(specs)
    half_precisions = [name if name in WIDE else "bf16" for name in precisions]
    own = efficiency_of(ids, families, list(precisions), ["bf16"] * n, [""] * n)
    half = efficiency_of(ids, families, ["bf16"] * n, ["bf16"] * n, [""] * n)
    gemm = replace(
        half.gemm, flop_ratio=own.gemm.flop_ratio, bandwidth_ratio=np.minimum(own.gemm.bandwidth_ratio, 0.9)
    )
    is_bus = np.array([spec.link.startswith("pcie") for spec in specs])
    domain = np.array([spec.link_domain_size for spec in specs], dtype=float)
    network = [NETWORK_BYTE_PER_S.get(spec.architecture, 25e9) for spec in specs]
    return JobHardware(
        flop_per_s=np.array([_peak(s, p) for s, p in zip(specs, precisions, strict=True)]),
        half_flop_per_s=np.array([_peak(s, p) for s, p in zip(specs, half_precisions, strict=True)]),
        bandwidth_byte_per_s=np.array([spec.bandwidth_byte_per_s for spec in specs]),
        memory_byte=np.array([spec.memory_byte for spec in specs]),
        link_byte_per_s=np.array([spec.link_bandwidth_byte_per_s for spec in specs]),
        domain_size=np.where(is_bus, np.maximum(domain, HOST_SIZE), domain),
        network_byte_per_s=np.where(is_bus, BUS_NETWORK_BYTE_PER_S, network),
        host_byte_per_s=np.array([bus_byte_per_s(spec) for spec in specs]),
        family=np.array([family_code(_architecture(spec)) for spec in specs]),
        gemm=gemm,
        half_gemm=half.gemm,
        attention=half.prefill_attention,
        **{name: getattr(half, _LINK_KERNELS[name]) for name in _LINK_KERNELS},
    )


def _peak(spec: AcceleratorSpec, precision: str) -> float:
    # products of 32 bits are not rounded to TF32 unless it is stated: ``torch.backends.cuda.matmul.allow_tf32``
    own = spec.peak_flop_per_s.get(precision) if precision in WIDE else None  # type: ignore[call-overload]
    return float(own) if own else peak_flop_per_s(spec, precision)


def _architecture(spec: AcceleratorSpec) -> str:
    return "TPU" if "tpu" in spec.id else ("Trainium" if "trainium" in spec.id else spec.architecture)


_LINK_KERNELS: Final = {"all_reduce": "nccl_all_reduce", "all_gather": "all_gather", "all_to_all": "all_to_all"}


def network_byte_per_s(rows: PredictionInput, per_node: FloatArray, default: FloatArray) -> FloatArray:
    """Return the network bandwidth of one accelerator: measured by the run, nominal of its node, or `default`.

    The bus bandwidth of an all-reduce over several nodes is bounded by the ports of a node together.
    """
    on_node = np.where(np.isnan(per_node), HOST_SIZE, per_node)
    nominal = number_column(rows, "node_bandwidth_byte_per_s", np.nan) / on_node
    measured = number_column(rows, "all_reduce_bandwidth_byte_per_s", np.nan) / on_node
    is_measured = ~np.isnan(measured) & (number_column(rows, "n_accelerator", 1.0) > on_node)
    return np.where(is_measured, measured, np.where(np.isnan(nominal), default, nominal))
