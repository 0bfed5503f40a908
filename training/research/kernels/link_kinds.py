"""Communication kernels inside one scale-up domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from research.kernels.kind import Kind
from research.kernels.precisions import link_byte_per_s
from roofcast.features.engine.kernels.efficiency import LinkEfficiency
from roofcast.features.engine.links import (
    Links,
    all_gather_s,
    all_reduce_s,
    all_to_all_s,
    links_inside,
    reduce_scatter_s,
)

FloatArray = npt.NDArray[np.float64]
Collective = Callable[[FloatArray, FloatArray, Links], FloatArray]

ELEMENT_BYTE: Final = {"half": 2.0, "bfloat16": 2.0, "int8": 1.0}
"""Bytes of one element of a message; the tables count elements."""


def _inside(collective: Collective, *, is_direct: bool) -> Callable[..., FloatArray]:
    def seconds(
        message_byte: FloatArray, n: FloatArray, link_byte_per_s: FloatArray, efficiency: LinkEfficiency
    ) -> FloatArray:
        return collective(message_byte, n, links_inside(n, link_byte_per_s, efficiency, is_direct=float(is_direct)))

    return seconds


def _message(dtype: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def describe(table: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "message_byte": table["message_size"] * table[dtype].map(ELEMENT_BYTE),
                "n": table["num_gpus"],
                "link_byte_per_s": link_byte_per_s(table["accelerator"]),
                "precision": "bf16",
            }
        )

    return describe


def _is_fallback_across_hosts(table: pd.DataFrame) -> pd.Series[bool]:
    is_host_of_four = table["accelerator"].str.startswith("nvidia-gb")
    is_across = table["num_gpus"] > np.where(is_host_of_four, 4, 8)
    return is_across & ~table["kernel_source"].str.contains("MNNVL", na=False)


def _nccl(name: str, op: str, collective: Collective) -> Kind:
    return Kind(
        name=name,
        table="nccl_perf",
        reject={"other_collective": lambda t: t["op_name"] != op},
        describe=_message("nccl_dtype"),
        seconds=_inside(collective, is_direct=name == "all_to_all"),
        start=(5e-6, 1.5e-6, 0.7, 0.1),
        ideal=(0.0, 0.0, 1.0, 0.0),
        spread=(1.0, 1.0, 0.5, 1.0),
    )


LINK_KINDS: Final = (
    Kind(
        name="all_reduce",
        table="custom_allreduce_perf",
        reject={
            "not_in_a_graph": lambda t: t["kernel_source"].str.contains("eager", na=False),
            "fallback_across_hosts": _is_fallback_across_hosts,
        },
        describe=_message("allreduce_dtype"),
        seconds=_inside(all_reduce_s, is_direct=True),
        start=(3e-6, 1e-6, 0.7, 0.1),
        ideal=(0.0, 0.0, 1.0, 0.0),
        spread=(1.0, 1.0, 0.5, 1.0),
    ),
    _nccl("nccl_all_reduce", "all_reduce", all_reduce_s),
    _nccl("all_gather", "all_gather", all_gather_s),
    _nccl("reduce_scatter", "reduce_scatter", reduce_scatter_s),
    _nccl("all_to_all", "alltoall", all_to_all_s),
)
"""Engines' custom all-reduce in CUDA graphs, and NCCL's collectives: rings, except all-to-all."""
