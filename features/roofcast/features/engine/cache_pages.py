"""Cache of one request as engines allocate it: pages of attention, windows, and blocks of recurrent state."""

from typing import Final

import numpy as np

from roofcast.features.columns import ENGINES
from roofcast.features.engine.engine_budgets import budget_column
from roofcast.features.queries import FloatArray, Queries

GROUP_SLACK: Final = 1.5
"""vLLM, ``kv_cache_utils``: kinds of layers whose numbers differ by less share groups of the larger number."""

SGLANG_STATE_RATIO: Final = 0.9
"""SGLang, option ``--mamba-full-memory-ratio``: memory for states, for each byte of the attention's cache."""

SGLANG_WINDOW_RATIO: Final = 0.8
"""SGLang, option ``--swa-full-tokens-ratio``: tokens of sliding layers, for each token of the full ones."""

COMPRESSED_PAGE: Final = 256.0
"""Tokens of a page of vLLM's compressed caches: its blocks are as large for windows and states of fewer tokens."""

_VLLM, _SGLANG = (float(ENGINES.index(name)) for name in ("vllm", "sglang"))


def kv_replication(d: Queries) -> FloatArray:
    """Return the copies of each cache element over tensor-parallel ranks: ranks over key-value heads, at least 1."""
    return np.maximum(1.0, d["config.tp"] / d["model.n_kv_head"])


def admitted_byte(d: Queries, context: FloatArray) -> FloatArray:
    """Return the cache that a request of `context` tokens needs to start: that of `running_byte` and its chunks."""
    return _request_byte(d, context, d["config.in_flight_token"])


def running_byte(d: Queries, context: FloatArray) -> FloatArray:
    """Return the cache of a decoding request of `context` tokens, summed over the accelerators that hold it.

    Keys and values of fewer heads than ranks are copied to each rank, and so is the latent of MLA.

    Notes
    -----
    vLLM gives every kind of layers groups of equally many layers, which draw pages of one size from one pool, so a
    page of attention is as long as a state is large, and a group that is not full wastes its places. A window holds
    one page more, and the chunks under way until their step ends: once, for requests share the tokens of a step.
    Each drafted token has a state of its own, and with kept
    prefixes a request has one state more. SGLang has pools of fixed proportions instead.

    References
    ----------
    vLLM 0.33, ``v1/kv_cache_interface.py`` (`max_memory_usage_bytes`, `max_admission_blocks_per_request`),
    ``v1/core/kv_cache_utils.py``, ``v1/core/single_type_kv_cache_manager.py`` (`remove_skipped_blocks`).
    SGLang 0.5.23, ``mem_cache/kv_cache_configurator.py``.
    """
    return _request_byte(d, context, np.zeros_like(context))


def _request_byte(d: Queries, context: FloatArray, n_in_flight: FloatArray) -> FloatArray:
    engine, n_draft = d["config.engine"], d["config.n_draft_token"]
    is_vllm, is_sglang = engine == _VLLM, engine == _SGLANG
    copies = kv_replication(d) * d["config.kv_byte_per_element"]
    n_full, n_sliding, n_state = (d[f"model.n_{kind}_layer"] for kind in ("full", "sliding", "linear"))
    n_drafting = np.where(
        d["model.window_block"] > 0, np.minimum(d["config.n_draft_layer"], 1), d["config.n_draft_layer"]
    )
    drafted = np.where(n_full > 0, 1 + n_drafting / np.maximum(n_full, 1.0), 1.0)
    index = d["model.index_byte"] * kv_replication(d)
    index = index + np.where(d["config.kv_byte_per_element"] < 2, d["model.entry_byte"], 0.0) * kv_replication(d)
    full = (d["model.kv_width"] * copies + index) * drafted
    is_blocked = is_vllm & (d["model.window_block"] > 0)
    sliding = np.where(
        is_blocked, full * COMPRESSED_PAGE * d["model.window_block"], d["model.kv_width_sliding"] * copies
    )
    state = d["model.state_byte"]
    page = np.maximum(budget_column(d, "page_token"), _page_of_state(full, n_full, state, n_state) * is_vllm)
    n_sliding = np.where(is_blocked, n_full, n_sliding)  # states and windows of all layers, in blocks of their own
    window = np.where(d["model.sliding_window"] > 0, d["model.sliding_window"], np.inf)
    held = np.where(is_vllm, window - 1 + n_in_flight, window)
    n_window = _pages(np.minimum(held, context), page) + np.where(is_vllm, page, 0.0)
    n_window = np.where(is_sglang, SGLANG_WINDOW_RATIO * context, n_window)
    padded = [
        np.where(is_vllm, _group_padding(n, n_full, n_sliding, n_state), 1.0) for n in (n_full, n_sliding, n_state)
    ]
    attention = padded[0] * full * _pages(context, page) + padded[1] * sliding * n_window
    n_copy = 1 + np.where(is_vllm | is_sglang, n_draft, 0.0) + np.where(is_vllm, d["config.keeps_prefixes"], 0.0)
    block = np.where(
        is_vllm & (n_full > 0), np.maximum(state, n_state * page * full / np.maximum(n_full, 1.0)), state
    )
    states = padded[2] * block * n_copy
    split = np.maximum(attention * (1 + SGLANG_STATE_RATIO), states * (1 + 1 / SGLANG_STATE_RATIO))
    byte = np.where(is_sglang & (state > 0), split, attention + states)
    return np.asarray(np.maximum(byte, 1.0), dtype=np.float64)


def _pages(n_token: FloatArray, page: FloatArray) -> FloatArray:
    return np.ceil(n_token / page) * page


def _page_of_state(full: FloatArray, n_full: FloatArray, state: FloatArray, n_state: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        n_token = (state / n_state) / (full / n_full)
    return np.where((state > 0) & (full > 0), np.ceil(np.nan_to_num(n_token, posinf=0.0) / 16) * 16, 0.0)


def _group_padding(n: FloatArray, *kinds: FloatArray) -> FloatArray:
    """Return the places of a kind's groups for each of its layers."""
    numbers = np.stack(kinds)
    most = numbers.max(axis=0)
    least = np.where(numbers > 0, numbers, np.inf).min(axis=0)
    size = np.maximum(np.where(most < GROUP_SLACK * least, most, least), 1.0)
    return np.where(n > 0, np.ceil(n / size) * size / np.maximum(n, 1.0), 1.0)
