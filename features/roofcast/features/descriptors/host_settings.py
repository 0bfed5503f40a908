"""Settings of the host that change an accelerator: its power limit, and its links to others."""

from typing import Final

import numpy as np

from roofcast.data.specs import AcceleratorSpec
from roofcast.features.descriptors.prediction_input import PredictionInput, number_column, text_column
from roofcast.features.queries import FloatArray, IndexArray

IDLE_RATIO: Final = 0.29
"""Share of the thermal design power that does not depend on the clock."""

VOLTAGE_FLOOR_RATIO: Final = 0.6
"""Fraction of the full dynamic power at which the voltage is at its minimum: below it only the clock falls."""

PCIE_BYTE_PER_S: Final = {3: 32e9, 4: 64e9, 5: 128e9, 6: 256e9}
"""Both directions of 16 lanes by generation: PCI-SIG, "PCI Express Base Specification"."""

UNKNOWN_PCIE_GEN: Final = 4
"""Generation assumed where a spec has none (Apple, Neuron, TPU, accelerators that users add): judgement, the
older of the two in common use."""

HOST_RATIO: Final = 0.75
"""Achieved bandwidth to and of the memory of the host over one direction of the bus, and over its peak: judgement."""

DESKTOP_BYTE_PER_S: Final = 89.6e9
SERVER_BYTE_PER_S: Final = 307.2e9
SUPERCHIP_BYTE_PER_S: Final = 512e9
SUPERCHIP_LINK_BYTE_PER_S: Final = 900e9
"""Peak of the host's memory: two channels of DDR5-5600 (Intel, Core of the 13th generation), eight of DDR5-4800
(Intel, Xeon of the 4th generation), and LPDDR5X and NVLink-C2C of NVIDIA's "Grace Hopper Superchip Architecture"."""

SUPERCHIP: Final = "Superchip"
"""Beginning of the form factor of accelerators with a Grace host."""

NO_PEER_TO_PEER: Final = "PCIe consumer"
"""Form factor whose driver does not let a card read another's memory: GeForce."""


def clock_ratio(power_limit_w: FloatArray, tdp_w: FloatArray) -> FloatArray:
    """Return the clock under a power limit relative to that at the thermal design power; 1 where blank (NaN).

    Notes
    -----
    Dynamic power is proportional to clock times voltage squared, and voltage to clock, so the clock is proportional
    to the cube root of dynamic power. Below the voltage floor the voltage is constant, and the clock is proportional
    to dynamic power. Relative to 350 W this reproduces the prefill speed of six RTX 3090 within 0.04: measured were
    0.94, 0.85, 0.60 and 0.26 at 300, 250, 200 and 150 W. Decoding keeps 0.94 of its speed at 200 W and 0.86 at 150 W,
    so memory bandwidth is not scaled.

    References
    ----------
    T. Mudge, "Power: A First-Class Architectural Design Constraint", IEEE Computer 34(4), 2001 (cubic law); LLM
    Garage, "Tokens-per-Second Test Bench: Power Limit Sweep", llmgarage.ai, February 2026 (llama.cpp).

    Examples
    --------
    >>> clock_ratio(np.array([300.0, 250.0, 200.0, 150.0, np.nan]), np.full(5, 350.0)).round(2)
    array([0.93, 0.84, 0.56, 0.27, 1.  ])
    """
    limit = np.fmin(np.where(np.isnan(power_limit_w), tdp_w, power_limit_w), tdp_w)
    dynamic = np.maximum(limit / tdp_w - IDLE_RATIO, 0.01) / (1 - IDLE_RATIO)
    below_floor = np.minimum(dynamic / VOLTAGE_FLOOR_RATIO, 1.0)
    return np.asarray(np.cbrt(np.maximum(dynamic, VOLTAGE_FLOOR_RATIO)) * below_floor, dtype=np.float64)


def bus_byte_per_s(spec: AcceleratorSpec) -> float:
    """Return the achieved rate from the memory of the host to one accelerator."""
    if "unified" in spec.memory_type.lower():
        return spec.bandwidth_byte_per_s
    is_superchip = spec.form_factor.startswith(SUPERCHIP)
    both = SUPERCHIP_LINK_BYTE_PER_S if is_superchip else PCIE_BYTE_PER_S[spec.pcie_gen or UNKNOWN_PCIE_GEN]
    return HOST_RATIO * both / 2


def host_byte_per_s(spec: AcceleratorSpec) -> float:
    """Return the rate at which the host of an accelerator reads its own memory: a desktop for GeForce."""
    if "unified" in spec.memory_type.lower():
        return spec.bandwidth_byte_per_s
    if spec.form_factor.startswith(SUPERCHIP):
        return HOST_RATIO * SUPERCHIP_BYTE_PER_S
    return HOST_RATIO * (DESKTOP_BYTE_PER_S if spec.form_factor == NO_PEER_TO_PEER else SERVER_BYTE_PER_S)


def describe_links(
    queries: PredictionInput, accelerators: list[AcceleratorSpec], codes: IndexArray
) -> dict[str, FloatArray]:
    """Return whether accelerators read each other's memory, their link bandwidth in both directions, and the host's.

    Without peer-to-peer access a scale-up fabric is not used, and messages take the PCIe bus.
    """
    is_open = [accelerator.form_factor != NO_PEER_TO_PEER for accelerator in accelerators]
    default = np.array(is_open, dtype=float)[codes]
    link = np.array([accelerator.link_bandwidth_byte_per_s for accelerator in accelerators], dtype=float)[codes]
    peer_to_peer = default
    switch = text_column(queries, "peer_to_peer", "")
    if (switch != "").any():
        peer_to_peer = np.where(switch == "on", 1.0, np.where(switch == "off", 0.0, default))
        pcie = np.array([PCIE_BYTE_PER_S[accelerator.pcie_gen or UNKNOWN_PCIE_GEN] for accelerator in accelerators])[
            codes
        ]
        link = np.where(switch == "off", np.minimum(link, pcie), link)
    given = number_column(queries, "link_bandwidth_byte_per_s", np.nan)
    return {
        "hardware.peer_to_peer": peer_to_peer,
        "hardware.host_byte_per_s": np.array([host_byte_per_s(one) for one in accelerators])[codes],
        "hardware.bus_byte_per_s": np.array([bus_byte_per_s(one) for one in accelerators])[codes],
        "hardware.link_byte_per_s": np.where(np.isnan(given), link, 2 * given),
    }
