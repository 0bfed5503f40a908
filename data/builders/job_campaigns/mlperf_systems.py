"""Submissions to MLPerf Training: framework in a normal form, precision, network and submitter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from roofcast.data.units import BYTE_PER_GBIT

FRAMEWORKS: Final = (
    ("tinygrad", "tinygrad"), ("maxtext", "maxtext"), ("pax", "paxml"), ("deepspeed", "deepspeed"),
    ("nemo", "nemo"), ("llmboost", "llmboost"), ("tensorflow", "tensorflow"), ("torch", "pytorch"),
)  # fmt: skip
"""Normal form by word of the submission's text, the most specific word first."""

ENCODER_FRAMEWORKS: Final = frozenset({"nemo"})
"""Frameworks of a submission's other benchmarks, which no encoder uses."""

_BLACKWELL: Final = ("b200", "b300")
_FP8: Final = ("h100", "h200", "l40s", "mi300", "mi325", "mi350", "mi355", "rtx 4090", *_BLACKWELL)
_NAMED: Final = re.compile(r"[_/](fp8|fp4|nvfp4)[_.]", re.IGNORECASE)
_COMPUTE: Final = re.compile(r"Compute:([^,;]*)")
_ADAPTERS: Final = re.compile(r"(?:(\d+) ?x\s.*?)?\b(\d+)\s*-?\s*G(?:b|ig)", re.IGNORECASE)
_NETWORKS: Final = (("roce", "roce"), ("ib ", "infiniband"), ("infiniband", "infiniband"), ("ethernet", "ethernet"))


def normalize_framework(text: str, benchmark: str) -> str:
    """Return the framework of a submission in a normal form; blank if its text names none.

    Examples
    --------
    >>> normalize_framework("PyTorch NVIDIA Release 25.04; NeMo Framework NVIDIA Release 25.09", "llama31_8b")
    'nemo'
    >>> normalize_framework("PyTorch, NeMo, HugeCTR, DGL NVIDIA Release 24.09", "bert")
    'pytorch'
    """
    skipped = ENCODER_FRAMEWORKS if benchmark == "bert" else frozenset()
    names = (name for word, name in FRAMEWORKS if word in text.casefold() and name not in skipped)
    return next(names, "")


def read_precision(row: Mapping[str, str]) -> tuple[str, str]:
    """Return compute precision and recipe of a decoder's run; blank where they do not follow.

    No result states its precision. The name of the configuration may; else the products of the tuned decoder
    benchmarks run in the fastest format of their rules: FP8 where the accelerator has it, NVFP4 on Blackwell in
    round 5.1, and BF16 on an A100. Read as BF16, 22 of them would exceed 0.85 of the peak.
    """
    part = row["accel"].casefold()
    if row["benchmark"] == "bert":
        return "", ""
    named = {match.casefold().removeprefix("nv") for match in _NAMED.findall(row["configs"])}
    if named == {"fp8"}:
        return "fp8", ""
    if any(word in part for word in _BLACKWELL) and row["round"] == "v5.1":
        return "fp4", "nvfp4"
    if any(word in part for word in _FP8):
        return "fp8", ""
    return ("bf16", "") if "a100" in part else ("", "")


def read_network(text: str) -> dict[str, object]:
    """Return kind and bandwidth of the network between nodes, as far as the submission's text states them.

    Examples
    --------
    >>> read_network("Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: 8x ConnectX-7 IB NDR 400Gb/s")
    {'network': 'infiniband', 'node_bandwidth_byte_per_s': 400000000000.0}
    >>> read_network("Ethernet, Infiniband")
    {}
    """
    compute = _COMPUTE.search(text)
    words = compute[1] if compute else text
    if not compute and re.search("[,;+]", words):
        return {}
    kind = next((name for word, name in _NETWORKS if word in f"{words} ".casefold()), "")
    match = _ADAPTERS.search(words)
    bandwidth = float(match[1] or 1) * float(match[2]) * BYTE_PER_GBIT if match and kind else None
    return {"network": kind, "node_bandwidth_byte_per_s": bandwidth}


def name_stack(submitter: str) -> str:
    """Return the stack of a submitter.

    Examples
    --------
    >>> name_stack("IBM+CoreWeave+NVIDIA")
    'mlperf/ibm-coreweave-nvidia'
    """
    return f"mlperf/{re.sub('[^a-z0-9]+', '-', submitter.casefold()).strip('-')}"
