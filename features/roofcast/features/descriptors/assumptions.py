"""Assumptions: the blank columns of a question whose usual values its answer rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Final

import numpy as np

from roofcast.data.measurements.schema import ACCEPTANCES
from roofcast.data.measurements.speculation import speculates
from roofcast.features.descriptors.prediction_input import ColumnArray

USUAL: Final = {
    "engine": "that of engines without coefficients of their own",
    "weight_precision": "the checkpoint's",
    "kv_precision": "16 bits; FP8 for TensorRT-LLM with weights of eight or four bits",
    "tp": "what the other degrees leave; copies of the model for a load stated as offline or open_loop",
    "concurrency": "one request in flight",
    "speculation": "none",
    "n_speculative_token": "3",
    "chain_acceptance_ratio": "the coefficient `acceptance`",
    "prefix_cache_ratio": "0: prompts that share nothing, the median of measured runs whose cache is on",
    "chunk_size_token": "the engine's default",
    "max_num_seqs": "the engine's default",
    "gpu_memory_utilization": "the engine's default: 0.92 for vLLM from 0.20, 0.90 before; SGLang's by chunk, graphs "
    "and ranks; 0.90 of what is free for TensorRT-LLM",
    "graphs": "on; off for engines that launch every kernel",
    "peer_to_peer": "on, except for GeForce",
    "length_variation": "0.5, typical of chat",
    "n_request": "a service in steady state: a run without end",
}
"""Usual value of each column that an answer lists as assumed."""


ASSUMED_LOAD: Final = "load_is_assumed"
"""Column of parsed questions beside those of the schema: True where neither concurrency nor request rate is given."""


def assumed_columns(table: Mapping[str, ColumnArray]) -> list[str]:
    """Return the columns of `USUAL` that each parsed row leaves to it, separated by spaces."""
    masks = np.column_stack([*assumption_masks(table, table[ASSUMED_LOAD]).values()])
    codes = (masks @ (1 << np.arange(len(USUAL)))).tolist()
    rows = {code: i for i, code in enumerate(codes)}
    texts = {code: " ".join(compress(USUAL, masks[i].tolist())) for code, i in rows.items()}
    return [*map(texts.__getitem__, codes)]


def assumption_masks(table: Mapping[str, ColumnArray], is_load_assumed: ColumnArray) -> dict[str, ColumnArray]:
    """Return, for each column of `USUAL`, whether it is blank and its usual value has an effect: shapes (n_row,).

    The tensor parallelism of one accelerator has none, for example, nor the settings of a speculation that is off.

    Parameters
    ----------
    is_load_assumed : shape (n_row,)
        Whether the load is blank, so that one request in flight is assumed.
    """
    n_row = len(table["model"])
    everywhere = np.ones(n_row, dtype=bool)
    is_shared = table["n_accelerator"] > 1
    is_speculative = speculates(table)
    has_effect = {
        "tp": is_shared,
        "peer_to_peer": is_shared,
        "n_speculative_token": is_speculative,
        "chain_acceptance_ratio": is_speculative & ~_has_any(table, ACCEPTANCES),
        "speculation": ~is_speculative,
        "n_request": ~np.isnan(table["concurrency"]),
    }
    if "prefix_caching" in table:
        has_effect["prefix_cache_ratio"] = table["prefix_caching"] != "off"
    if "load" in table:
        has_effect["n_request"] &= table["load"] != "static_batch"
    masks = {}
    for name in USUAL:
        is_blank = is_load_assumed if name == "concurrency" else _is_blank(table, name, everywhere)
        masks[name] = is_blank & has_effect[name] if name in has_effect else is_blank
    return masks


def _has_any(table: Mapping[str, ColumnArray], names: Sequence[str]) -> ColumnArray:
    absent = np.ones(len(table["model"]), dtype=bool)
    return np.asarray(np.any([~_is_blank(table, name, absent) for name in names], axis=0))


def _is_blank(table: Mapping[str, ColumnArray], name: str, absent: ColumnArray) -> ColumnArray:
    if name not in table:
        return absent
    cells = table[name]
    return np.isnan(cells) if cells.dtype.kind == "f" else np.asarray(cells == "", dtype=bool)
