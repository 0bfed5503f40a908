"""Parallelism: tensor, pipeline, data, expert and context parallelism, and disaggregated prefill."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from roofcast.data.errors import InputError
from roofcast.features.descriptors.prediction_input import PredictionInput, number_column, text_column
from roofcast.features.queries import BoolArray, FloatArray

MAX_DEFAULT_TP: Final = 8.0
"""Largest tensor parallelism assumed; a larger replica with a blank split runs attention data-parallel with experts
spread over all accelerators."""

MAX_WEIGHT_RATIO: Final = 0.5
"""Largest share of memory for the weights of one copy where the default split favours throughput; the rest is
cache."""


def split_devices(
    queries: PredictionInput,
    is_mla: BoolArray,
    weight_ratio: FloatArray,
    is_layered: BoolArray,
) -> dict[str, FloatArray]:
    """Return the parallelism descriptors.

    Raises `InputError` if the product of the split is not the number of accelerators, if the `tp` that it implies is
    fractional, or if a given parallelism is not a whole number.

    - `is_mla`: shape (n_row,). Whether the model has multi-head latent attention.
    - `weight_ratio`: shape (n_row,). Memory of the weights over the memory of one accelerator.
    - `is_layered`: shape (n_row,). Whether the engine splits a model by layers by default.

    Notes
    -----
    Experts are spread over `moe_tp` x `ep` accelerators, by default over those of `tp`, and over all of a stage where
    `tp` cannot hold a copy: vLLM and SGLang split them over the ranks of data-parallel attention. A replica of more
    than eight accelerators with a blank split runs attention data-parallel and spreads its experts over all, as in
    section 3.4 of DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024. Other replicas with a blank split are split by
    tensors, but for runs whose `load` is stated as a queue or an open loop: benchmarks of that kind (MLPerf) are
    configured for throughput, as many data-parallel copies as the weights leave room for, because separate copies
    exchange no messages. llama.cpp splits by layers (``--split-mode layer``),
    which makes a pipeline. With disaggregated prefill the split is that of one decode worker, and `dp` counts the
    ranks of all decode workers.
    """
    n_accelerator = number_column(queries, "n_accelerator", 1.0)
    n_prefill = number_column(queries, "n_prefill_accelerator", 0.0)
    is_apart = n_prefill > 0
    n_decode = np.where(
        is_apart, number_column(queries, "n_decode_accelerator", n_accelerator - n_prefill), n_accelerator
    )
    cp, given_dp = _ranks(queries, "cp", 1.0), _ranks(queries, "dp", np.nan)
    given_tp = number_column(queries, "tp", np.nan)
    pp = _ranks(queries, "pp", np.where(is_layered & np.isnan(given_tp) & np.isnan(given_dp), n_decode / cp, 1.0))
    is_wide = (n_decode > MAX_DEFAULT_TP) & np.isnan(given_tp)
    default_tp = np.where(is_mla, 1.0, MAX_DEFAULT_TP)
    n_group = n_decode / (pp * cp) / default_tp
    is_wide &= n_group % 1 == 0
    n_copy = np.where(_is_for_throughput(queries) & ~is_apart, _copies(n_decode / (pp * cp), weight_ratio), 1.0)
    n_copy = np.where(np.isnan(given_tp), n_copy, 1.0)
    dp = np.where(np.isnan(given_dp), np.where(is_wide, n_group, n_copy), given_dp)
    tp = np.where(np.isnan(given_tp), n_decode / (pp * dp * cp), given_tp)
    worker = tp * pp * dp * cp
    n_worker = np.where(is_apart, n_decode / worker, 1.0)
    _check_split({"tp": tp, "pp": pp, "dp": dp, "cp": cp}, n_worker, n_decode, is_apart)
    ep = number_column(queries, "ep", np.where(is_wide, n_decode / pp, 1.0))
    is_shared = weight_ratio > tp * pp
    moe_tp = number_column(queries, "moe_tp", np.where(is_shared & (ep == 1), worker / pp, 1.0))
    expert_rank = np.minimum(np.maximum(tp, moe_tp * ep), worker / pp)
    return {
        "config.n_accelerator": n_decode,
        "config.n_prefill_accelerator": n_prefill,
        "config.tp": tp,
        "config.pp": pp,
        "config.dp": dp * n_worker,
        "config.cp": cp,
        "config.ep": np.minimum(ep, expert_rank),
        "config.expert_rank": expert_rank,
    }


def _is_for_throughput(queries: PredictionInput) -> BoolArray:
    return np.isin(text_column(queries, "load", "").astype(str), ("offline", "open_loop"))


def _copies(n_accelerator: FloatArray, weight_ratio: FloatArray) -> FloatArray:
    width = 2.0 ** np.ceil(np.log2(np.maximum(weight_ratio / MAX_WEIGHT_RATIO, 1.0)))
    n_copy = n_accelerator / width
    return np.where((n_copy >= 1) & (n_copy % 1 == 0), n_copy, 1.0)


def _ranks(queries: PredictionInput, name: str, default: float | FloatArray) -> FloatArray:
    ranks = number_column(queries, name, default)
    wrong = (ranks < 1) | (ranks % 1 > 0)
    if wrong.any():
        raise InputError(name, f"must be a whole number of at least 1, got {ranks[wrong][0]:g}")
    return ranks


def _check_split(
    split: Mapping[str, FloatArray],
    n_worker: FloatArray,
    n_accelerator: FloatArray,
    is_apart: BoolArray,
) -> None:
    product = n_worker * np.prod(list(split.values()), axis=0)
    wrong = ~np.isclose(product, n_accelerator) | (split["tp"] % 1 != 0) | (split["tp"] < 1)
    wrong |= n_worker * split["dp"] % 1 != 0
    if wrong.any():
        i = int(wrong.argmax())
        shown = {name: sizes[i] for name, sizes in split.items() if name != "cp" or sizes[i] != 1}
        rule = "divide n_decode_accelerator" if is_apart[i] else "equal n_accelerator"
        sizes = " x ".join(f"{size:g}" for size in shown.values())
        problem = f"{' x '.join(shown)} must {rule} in whole numbers, got {sizes} and {n_accelerator[i]:g}"
        raise InputError("tp", problem)
