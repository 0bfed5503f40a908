"""Usual numbers of accelerators, for the linter: ratios between precisions, memories, links; and exceptions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

UNKNOWN_RATIOS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 28.0, 31.0)

HALF_OVER_FP32: Final[tuple[tuple[str, str, tuple[float, ...]], ...]] = (
    ("pascal", "", (2.0,)),
    ("volta", "", (8.0,)),
    ("turing", "geforce", (4.0, 8.0)),
    ("turing", "", (8.0,)),
    ("ampere", "hbm", (16.0,)),
    ("ampere", "lpddr", (8.0,)),
    ("ampere", "geforce", (2.0,)),
    ("ampere", "", (4.0,)),
    ("ada", "geforce", (2.0,)),
    ("ada", "", (2.0, 4.0)),
    ("hopper", "", (13.9, 14.8)),
    ("blackwell", "hbm", (28.1, 31.2)),
    ("blackwell", "lpddr", (4.0, 20.0)),
    ("blackwell", "geforce", (2.0,)),
    ("blackwell", "", (4.0,)),
    ("cdna2", "", (8.0,)),
    ("cdna3", "", (8.0,)),
    ("cdna4", "", (16.0,)),
    ("rdna", "", (2.0, 4.0)),
    ("xe-hpc", "", (16.0,)),
    ("xe2", "", (8.0,)),
    ("gaudi", "", (7.3,)),
    ("neuroncore", "", (3.7, 4.0)),
    ("apple", "", (1.0, 2.0)),
    ("amx", "", (16.0,)),
    ("neoverse", "", (2.0, 4.0)),
)
"""Dense ratios of 16-bit over fp32 peaks, by a word of the architecture and one of name or memory; the first match
counts. Twice such a ratio indicates a peak with structured sparsity."""

NARROW_RATIOS: Final[tuple[tuple[str, str, tuple[float, ...], tuple[float, ...]], ...]] = (
    ("fp8", "half", (1.0, 2.0), (1.0, 2.0)),
    ("int8", "half", (1.0, 2.0), (2.0, 4.0)),
    ("fp4", "fp8", (2.0,), (2.0, 4.0)),
    ("int4", "int8", (2.0,), (2.0,)),
    ("tf32", "half", (0.5, 1.0), (0.5,)),
    ("bf16", "fp16", (1.0,), (1.0,)),
)
"""Narrow precision, wide precision, dense ratios, and those of GeForce cards, which run 16 and 8 bits at half rate
with fp32 accumulation, so that the ratio of integers doubles."""

FIRST_YEAR: Final[Mapping[str, int]] = {"bf16": 2017, "tf32": 2020, "fp8": 2022, "fp4": 2024}
"""Year of the first accelerator with the precision."""

FLOP_PER_J: Final = ((2016, 0.15e12), (2018, 1.0e12), (2021, 1.4e12), (2023, 2.3e12), (2025, 3.0e12))
LATER_FLOP_PER_J: Final = 6e12
"""Largest dense 16-bit operations per joule at rated power, for accelerators up to a year, and for later ones."""

BYTE_PER_FLOP: Final = (0.001, 0.08)
"""Usual bandwidth over the 16-bit peak."""

TDP_W: Final = (5.0, 3000.0)
LAST_CACHE_MIB: Final = (0.5, 1200.0)


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryKind:
    """Usual bandwidth, capacity and full memory reads per second of a memory type, and its first year."""

    gb_per_s: tuple[float, float]
    gib: tuple[float, float]
    read_per_s: tuple[float, float]
    first_year: int


MEMORY_KINDS: Final[Mapping[str, MemoryKind]] = {
    "hbm4": MemoryKind((5_000, 30_000), (128, 1_200), (15, 80), 2026),
    "hbm3e": MemoryKind((3_900, 9_500), (96, 320), (18, 45), 2023),
    "hbm3": MemoryKind((1_600, 6_100), (48, 192), (18, 45), 2022),
    "hbm2e": MemoryKind((1_400, 3_800), (32, 128), (18, 45), 2020),
    "hbm2": MemoryKind((700, 1_700), (8, 48), (20, 60), 2016),
    "hbm": MemoryKind((400, 9_500), (4, 320), (15, 80), 2015),
    "gddr7": MemoryKind((250, 2_000), (8, 128), (12, 80), 2025),
    "gddr6x": MemoryKind((400, 1_100), (8, 24), (30, 90), 2020),
    "gddr6": MemoryKind((150, 1_000), (4, 64), (8, 60), 2018),
    "gddr5": MemoryKind((50, 500), (2, 32), (8, 60), 2008),
    "lpddr": MemoryKind((30, 1_000), (4, 1_024), (0.5, 20), 2013),
    "ddr5": MemoryKind((40, 1_300), (16, 6_144), (0.02, 5), 2021),
    "mrdimm": MemoryKind((200, 1_700), (16, 6_144), (0.02, 5), 2024),
    "ddr4": MemoryKind((20, 250), (4, 4_096), (0.02, 10), 2014),
    "dram": MemoryKind((20, 250), (4, 4_096), (0.02, 10), 2010),
}
"""Memory types by a word of the name; the first match counts."""

LINKS_GB_PER_S: Final[Mapping[str, float]] = {
    "nvlink1": 160.0, "nvlink2": 300.0, "nvlink3": 600.0, "nvlink4": 900.0, "nvlink5": 1800.0,
    "pcie3": 32.0, "pcie4": 64.0, "pcie5": 128.0, "pcie6": 256.0,
}  # fmt: skip
"""Link bandwidth, both directions together; PCIe with 16 lanes."""

EXCEPTIONS: Final[Mapping[tuple[str, str], str]] = {
    ("nvidia-a10g-24gb", "half over fp32"): "AWS states 70 TFLOP/s in fp16, less than the ratio of its family",
    **{
        (f"nvidia-h20-{memory}", "half over fp32"): "tensor cores cut for export, vector cores not"
        for memory in ("96gb", "141gb")
    },
    ("huawei-ascend-950pr-128gb", "link over memory"): "Huawei states 2 TB/s of links over 1.6 TB/s of memory",
    ("intel-gaudi3-128gb", "tf32 over half"): "the data sheet gives tf32 a quarter of the rate of bf16",
    ("intel-gaudi3-128gb", "bf16 over fp16"): "the data sheet gives fp16 the rate of tf32",
    ("nvidia-b300-sxm-270gb", "int8 over half"): "integer units given up for fp4",
    ("nvidia-gb300", "int8 over half"): "integer units given up for fp4",
    ("nvidia-b300-sxm-270gb", "fp4 over fp8"): "fp4 units widened by half",
    ("nvidia-gb300", "fp4 over fp8"): "fp4 units widened by half",
    ("aws-graviton3", "bf16 over fp16"): "matrix instructions for bf16, vector instructions for fp16",
    ("aws-graviton4", "bf16 over fp16"): "matrix instructions for bf16, vector instructions for fp16",
    ("aws-trainium3", "fp8 over half"): "MXFP8 is four times as fast by design",
    ("aws-trainium3", "fp4 over fp8"): "MXFP4 runs at the rate of MXFP8",
    ("nvidia-l40s-48gb", "int4 over int8"): "the data sheet gives both the same rate",
    ("aws-inferentia1", "byte per flop"): "DDR4 behind on-chip memory that holds the weights",
    ("nvidia-gh200-96gb", "link domain"): "NVLink in NVL32 racks, none in boxes of one chip, which are listed",
    ("nvidia-gh200-144gb", "link domain"): "NVLink in racks, none in boxes of one chip, which are listed",
    ("amd-mi100-32gb", "bf16 over fp16"): "matrix cores of the first CDNA run bf16 at half rate",
    **{
        (f"apple-{part}", "half over fp32"): "16 bits run on the neural accelerators of the GPU cores"
        for part in ("m5-32gb", "m5-pro-64gb", "m5-max-128gb")
    },
    ("tenstorrent-p300-64gb", "bandwidth"): "two chips, each with a memory of its own",
}
"""Reason why a number is right nevertheless, by accelerator id and rule."""
