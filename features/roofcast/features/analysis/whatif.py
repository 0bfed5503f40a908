"""Hypothetical accelerators: a known one with other bandwidth, operations, memory, links or logic process."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.specs import AcceleratorSpec
from roofcast.features.engine.kernels.row_kernels import HYPOTHETICAL

FACTORS: Final = ("bandwidth", "flops", "memory", "link", "power")
"""Scalable properties: memory bandwidth, peak operations at all precisions, memory, link bandwidth, TDP."""


@dataclass(frozen=True, slots=True)
class LogicNode:
    """A logic process relative to the previous one in `NODES`: transistor density, and power at equal speed."""

    density_ratio: float
    power_ratio: float
    source: str


NODES: Final[dict[str, LogicNode]] = {
    "N16": LogicNode(1.0, 1.0, "first of the list"),
    "N7": LogicNode(3.3, 0.40, "TSMC on N7: dies of 16FF+ smaller by 70 %, power less by 60 %"),
    "N5": LogicNode(1.8, 0.70, "TSMC on N5: 1.8 x the logic density of N7, power less by 30 %"),
    "N3": LogicNode(1.6, 0.68, "TSMC on N3: 60 to 70 % more logic on an area than N5, power less by 30 to 35 %"),
    "N2": LogicNode(1.15, 0.725, "TSMC on N2: 1.15 x the chip density of N3E, power less by 25 to 30 %"),
    "A14": LogicNode(1.23, 0.725, "TSMC on A14: 1.23 x the logic density of N2, power less by 25 to 30 %"),
}
"""Logic processes, oldest first. Figures are the foundry's comparisons of equal circuits; whole chips gain less."""

DRAM_BYTE_PER_S: Final = {
    "HBM2": 256e9, "HBM2E": 460.8e9, "HBM3": 819.2e9, "HBM3E": 1228.8e9, "HBM4": 2048e9,
}  # fmt: skip
"""Bandwidth of one stack.

References
----------
JEDEC: JESD235 (HBM2, 2 Gbit/s a pin; HBM2E, 3.6), JESD238 (HBM3, 6.4), JESD270-4 (HBM4, 8 on twice as many pins);
HBM3E: 9.6 Gbit/s a pin, as makers of the memory state it.
"""


def scale_accelerator(
    spec: AcceleratorSpec,
    *,
    bandwidth: float = 1.0,
    flops: float = 1.0,
    memory: float = 1.0,
    link: float = 1.0,
    power: float = 1.0,
    name: str | None = None,
) -> AcceleratorSpec:
    """Return a copy of `spec` with its data-sheet figures multiplied by these factors.

    Kernel efficiencies, launches and tiles remain those measured on `spec`, because the id begins with the id of
    `spec`.

    `spec`: the parent, possibly hypothetical itself. `name`: suffix of id and name; by default the factors. Raises
    `InputError` if a factor is not a positive number.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> l4 = load_catalog().accelerators["nvidia-l4-24gb"]
    >>> twice = scale_accelerator(l4, bandwidth=2)
    >>> twice.id, twice.bandwidth_byte_per_s / l4.bandwidth_byte_per_s
    ('nvidia-l4-24gb~bandwidth=2', 2.0)
    """
    return _scale(spec, dict(zip(FACTORS, (bandwidth, flops, memory, link, power), strict=True)), name)


def _scale(spec: AcceleratorSpec, requested: Mapping[str, float], name: str | None) -> AcceleratorSpec:
    factors = {factor: requested.get(factor, 1.0) for factor in FACTORS}
    for factor, value in factors.items():
        if not 0 < value < float("inf"):
            raise InputError(factor, f"must be a positive factor, got {value}")
    description = " ".join(f"{factor}={value:g}" for factor, value in factors.items() if value != 1)
    label = name or description.replace(" ", ",") or "as-it-is"
    changes = {
        "id": f"{spec.id}{HYPOTHETICAL if HYPOTHETICAL not in spec.id else ','}{label}",
        "name": f"{spec.name} ({label})",
        "bandwidth_byte_per_s": spec.bandwidth_byte_per_s * factors["bandwidth"],
        "peak_flop_per_s": {precision: peak * factors["flops"] for precision, peak in spec.peak_flop_per_s.items()},
        "memory_byte": spec.memory_byte * factors["memory"],
        "link_bandwidth_byte_per_s": spec.link_bandwidth_byte_per_s * factors["link"],
        "tdp_w": spec.tdp_w and spec.tdp_w * factors["power"],
        "source": f"hypothetical: {spec.id} with {description or 'no change'}",
    }
    return AcceleratorSpec.parse(spec.model_dump() | changes)


def sweep(spec: AcceleratorSpec, steps: Iterable[Mapping[str, float]]) -> list[AcceleratorSpec]:
    """Return one hypothetical accelerator per step; a step maps factors of `scale_accelerator` to values.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> h100 = load_catalog().accelerators["nvidia-h100-sxm-80gb"]
    >>> [part.bandwidth_byte_per_s / 1e12 for part in sweep(h100, dram_steps(["HBM3", "HBM3E", "HBM4"]))]
    [3.35, 5.025, 8.375]
    """
    return [_scale(spec, step, None) for step in steps]


def node_steps(nodes: Sequence[str]) -> list[dict[str, float]]:
    """Return the factor on peak operations of each of `nodes` relative to the first, which is the accelerator's own.

    Raises `UnknownNameError` if a process is unknown.

    Notes
    -----
    Die area and power are constant: the number of units grows by density or by ``1 / power``, whichever is smaller,
    at the same clock. Memory and links stay the same, to be swept separately.

    References
    ----------
    J. Kundu et al., "Performance Modeling and Workload Analysis of Distributed Large Language Model Training and
    Inference", 2024, arXiv 2407.14645: sweeps of logic processes under area and power budgets, and of memory
    generations. The factors here are the foundry's.

    Examples
    --------
    From N7 to N5 power is the limit, 1 / 0.7; area would allow 1.8 times the units:

    >>> node_steps(["N7", "N5"])
    [{'flops': 1.0}, {'flops': 1.429}]
    """
    cumulative = {}
    density = power = 1.0
    for node, step in NODES.items():
        density, power = density * step.density_ratio, power * step.power_ratio
        cumulative[node] = (density, power)
    own_density, own_power = cumulative[_check_name("node", nodes[0], NODES)]
    ratios = [cumulative[_check_name("node", node, NODES)] for node in nodes]
    return [{"flops": round(min(dense / own_density, own_power / watt), 3)} for dense, watt in ratios]


def dram_steps(generations: Sequence[str]) -> list[dict[str, float]]:
    """Return the factor on memory bandwidth of each memory generation relative to the first.

    The number of stacks and the capacity are unchanged.

    Raises `UnknownNameError` if a generation is unknown.

    Examples
    --------
    >>> dram_steps(["HBM3", "HBM4"])
    [{'bandwidth': 1.0}, {'bandwidth': 2.5}]
    """
    rates = [DRAM_BYTE_PER_S[_check_name("dram", name, DRAM_BYTE_PER_S)] for name in generations]
    return [{"bandwidth": round(rate / rates[0], 3)} for rate in rates]


def parse_steps(kind: str, values: Sequence[str]) -> list[dict[str, float]]:
    """Return the steps of a sweep over a kind, one of `FACTORS`, ``node`` or ``dram``, from its values as text.

    Raises `InputError` if the kind or a value is invalid.

    Examples
    --------
    >>> parse_steps("link", ["1", "0.5"])
    [{'link': 1.0}, {'link': 0.5}]
    """
    if kind == "node":
        return node_steps(values)
    if kind == "dram":
        return dram_steps(values)
    if kind not in FACTORS:
        raise InputError("scale", f"must name one of {', '.join(FACTORS)}, node and dram, got {kind!r}")
    try:
        return [{kind: float(value)} for value in values]
    except ValueError as error:
        raise InputError(kind, f"must be a positive factor, got {', '.join(values)}") from error


def _check_name(kind: str, name: str, names: Iterable[str]) -> str:
    if name not in names:
        raise UnknownNameError(kind, name, list(names))
    return name
