"""Assumptions: the blank columns of a question whose usual values its answer rests on."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from roofcast.data.measurements.schema import ACCEPTANCES
from roofcast.data.measurements.speculation import speculates
from roofcast.data.specs import ModelSpec
from roofcast.features.descriptors.precisions import served_precision
from roofcast.features.descriptors.prediction_input import ColumnArray, factorize
from roofcast.features.queries import Queries

USUAL: Final = {
    "engine": "that of the format of the weights, of GGUF and MLX; llama.cpp where no server is known to run; else "
    "that of engines without coefficients of their own",
    "engine_version": "the newest",
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


ASSUMED_PRECISION: Final = "precision_is_assumed"
"""Column likewise: True where the engine does not serve the checkpoint's precision, and serves the one of the row."""

ASSUMED_ENGINE: Final = "engine_is_assumed"
"""Column likewise: True where the engine of the row is that of the weights' format, or the one that runs there."""

ASSUMED: Final = {"weight_precision": ASSUMED_PRECISION, "engine": ASSUMED_ENGINE}
"""Columns by the one whose values they say are assumed."""


def assumed_values(
    table: Mapping[str, ColumnArray], queries: Queries, models: Mapping[str, ModelSpec], is_load_assumed: ColumnArray
) -> list[str]:
    """Return what each parsed row leaves to `USUAL`, as `column=value` separated by spaces.

    - `queries`: Descriptors of the rows.
    - `models`: Specs by the ids in the table.
    - `is_load_assumed`: shape (n_row,). Whether the load is blank, so that one request in flight is assumed.
    """
    columns, texts = [], []
    masks = assumption_masks(table, is_load_assumed)
    for name in ("pp", "dp", "ep"):  # printed where the blank split gives them a degree
        has_degree = np.asarray(queries[_DESCRIPTORS[name]] != 1, dtype=bool)
        masks[name] = masks["tp"] & has_degree & _is_blank(table, name, np.ones(len(has_degree), dtype=bool))
    for name, mask in masks.items():
        if mask.any():
            codes, values = factorize(_values(name, table, queries, models))
            columns.append(np.where(mask, codes + 1, 0).tolist())
            texts.append(["", *(f"{name}={_text(value)}" for value in values)])
    rows = [*zip(*columns, strict=True)] or [()] * len(table["model"])
    joined = {
        row: " ".join(filter(None, (of[code] for of, code in zip(texts, row, strict=True))))
        for row in dict.fromkeys(rows)
    }
    return [joined[row] for row in rows]


_DESCRIPTORS: Final = {
    "tp": "config.tp",
    "pp": "config.pp",
    "dp": "config.dp",
    "ep": "config.ep",
    "n_speculative_token": "config.n_draft_token",
    "prefix_cache_ratio": "workload.prefix_cache_ratio",
    "chunk_size_token": "config.chunk_token",
    "max_num_seqs": "config.max_num_seqs",
    "gpu_memory_utilization": "config.memory_ratio",
    "length_variation": "workload.length_variation",
    "n_request": "workload.n_request",
}
_WORDS: Final = {
    "engine": "other", "engine_version": "newest", "concurrency": "1", "speculation": "none",
    "chain_acceptance_ratio": "typical",
}  # fmt: skip
_KV_PRECISION: Final = {2.0: "fp16", 1.0: "fp8", 0.5: "fp4"}


def _values(
    name: str, table: Mapping[str, ColumnArray], queries: Queries, models: Mapping[str, ModelSpec]
) -> ColumnArray:
    if name in _DESCRIPTORS:
        return np.round(np.asarray(queries[_DESCRIPTORS[name]], dtype=float), 4)
    if name in ASSUMED:
        own = {id_: served_precision(models[str(id_)].weight_precision) for id_ in dict.fromkeys(table["model"])}
        usual = np.array([_WORDS.get(name) or own[id_] for id_ in table["model"]], dtype=object)
        return np.where(table[name] == "", usual, table[name])
    if name == "kv_precision":
        return np.array(
            [_KV_PRECISION.get(byte, byte) for byte in queries["config.kv_byte_per_element"]], dtype=object
        )
    if name == "graphs":
        return np.where(queries["config.is_eager"] > 0, "off", "on")
    if name == "peer_to_peer":
        return np.where(queries["hardware.peer_to_peer"] > 0, "on", "off")
    return np.full(len(table["model"]), _WORDS[name], dtype=object)


def _text(value: object) -> str:
    return str(value) if isinstance(value, str) else "unbounded" if value == np.inf else f"{value:g}"


def assumption_masks(table: Mapping[str, ColumnArray], is_load_assumed: ColumnArray) -> dict[str, ColumnArray]:
    """Return, for each column of `USUAL`, whether it is blank and its usual value has an effect: shapes (n_row,).

    The tensor parallelism of one accelerator has none, for example, nor the settings of a speculation that is off.

    `is_load_assumed`: shape (n_row,): whether the load is blank, so that one request in flight is assumed.
    """
    n_row = len(table["model"])
    everywhere = np.ones(n_row, dtype=bool)
    is_shared = table["n_accelerator"] > 1
    is_speculative = speculates(table)
    has_effect = {
        "engine_version": ~_is_blank(table, "engine", everywhere),
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
    for name, column in ASSUMED.items():
        if column in table:
            masks[name] |= table[column]
    return masks


def _has_any(table: Mapping[str, ColumnArray], names: Sequence[str]) -> ColumnArray:
    absent = np.ones(len(table["model"]), dtype=bool)
    return np.asarray(np.any([~_is_blank(table, name, absent) for name in names], axis=0))


def _is_blank(table: Mapping[str, ColumnArray], name: str, absent: ColumnArray) -> ColumnArray:
    if name not in table:
        return absent
    cells = table[name]
    return np.isnan(cells) if cells.dtype.kind == "f" else np.asarray(cells == "", dtype=bool)
