"""Who shares what: tensor, pipeline, data, expert and context parallelism, and prefill apart from decode."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.data.errors import InputError
from roofcast.features.descriptors.prediction_input import PredictionInput, number_column, text_column

FloatArray = npt.NDArray[np.float64]

WIDEST_TP: Final = 8.0
"""Beyond it, a split that is not told is taken to be of attention's batch, with the experts spread over all."""

FULLEST: Final = 0.5
"""Share of memory up to which weights leave room for a cache worth having, where a split for throughput is chosen."""


def split_devices(
    queries: PredictionInput, is_mla: npt.NDArray[np.bool_], n_filled: FloatArray
) -> dict[str, FloatArray]:
    """Return the descriptors of the split.

    Parameters
    ----------
    queries
    is_mla : shape (n_question,)
        Whether the model attends to latents.
    n_filled : shape (n_question,)
        Accelerators whose whole memory the weights would fill.

    Notes
    -----
    Experts lie on `moe_tp` x `ep` accelerators, or on those of `tp` if nothing is said. A replica of more than eight
    accelerators whose split is blank runs attention data parallel and spreads its experts over all, as in section
    3.4 of DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024. Other machines that work off a queue or a request rate,
    their split blank, are taken to be set up for throughput: as many data-parallel copies as the weights leave room
    for, since a copy of its own saves each accelerator the messages. Where prefill runs apart, the split is that of
    one decode worker, and `dp` counts the ranks of all decode workers together.

    Raises
    ------
    InputError
        If a split does not multiply up to the number of accelerators, leaves a broken one to `tp`, or has a share
        that is no whole number.
    """
    n_accelerator = number_column(queries, "n_accelerator", 1.0)
    n_prefill = number_column(queries, "n_prefill_accelerator", 0.0)
    is_apart = n_prefill > 0
    n_decode = np.where(
        is_apart, number_column(queries, "n_decode_accelerator", n_accelerator - n_prefill), n_accelerator
    )
    pp, cp = _ranks(queries, "pp", 1.0), _ranks(queries, "cp", 1.0)
    told_tp, told_dp = number_column(queries, "tp", np.nan), _ranks(queries, "dp", np.nan)
    is_wide = (n_decode > WIDEST_TP) & np.isnan(told_tp)
    widest = np.where(is_mla, 1.0, WIDEST_TP)
    n_group = n_decode / (pp * cp) / widest
    is_wide &= n_group % 1 == 0
    n_copy = np.where(_is_for_throughput(queries) & ~is_apart, _copies(n_decode / (pp * cp), n_filled), 1.0)
    n_copy = np.where(np.isnan(told_tp), n_copy, 1.0)
    dp = np.where(np.isnan(told_dp), np.where(is_wide, n_group, n_copy), told_dp)
    tp = np.where(np.isnan(told_tp), n_decode / (pp * dp * cp), told_tp)
    worker = tp * pp * dp * cp
    n_worker = np.where(is_apart, n_decode / worker, 1.0)
    _check(tp, pp * cp, dp * n_worker, n_decode)
    ep = number_column(queries, "ep", np.where(is_wide, n_decode / pp, 1.0))
    expert_rank = np.minimum(np.maximum(tp, number_column(queries, "moe_tp", 1.0) * ep), worker / pp)
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


def _is_for_throughput(queries: PredictionInput) -> npt.NDArray[np.bool_]:
    has_rate = ~np.isnan(number_column(queries, "request_rate", np.nan))
    return np.asarray(has_rate | (text_column(queries, "load", "closed_loop") == "offline"), dtype=np.bool_)


def _copies(n_accelerator: FloatArray, n_filled: FloatArray) -> FloatArray:
    """Return how many copies of a model fit: each on the least power of two of accelerators that is wide enough."""
    width = 2.0 ** np.ceil(np.log2(np.maximum(n_filled / FULLEST, 1.0)))
    n_copy = n_accelerator / width
    return np.where((n_copy >= 1) & (n_copy % 1 == 0), n_copy, 1.0)


def _ranks(queries: PredictionInput, name: str, default: float) -> FloatArray:
    n_rank = number_column(queries, name, default)
    wrong = (n_rank < 1) | (n_rank % 1 > 0)
    if wrong.any():
        raise InputError(name, f"must be a whole number of at least 1, got {n_rank[wrong][0]:g}")
    return n_rank


def _check(tp: FloatArray, pp: FloatArray, dp: FloatArray, n_accelerator: FloatArray) -> None:
    wrong = ~np.isclose(tp * pp * dp, n_accelerator) | (tp % 1 != 0) | (tp < 1) | (dp % 1 != 0)
    if wrong.any():
        i = int(wrong.argmax())
        raise InputError(
            "tp",
            "tp x pp x dp must equal n_accelerator in whole numbers, got "
            f"{tp[i]:g} x {pp[i]:g} x {dp[i]:g} and {n_accelerator[i]:g}",
        )
