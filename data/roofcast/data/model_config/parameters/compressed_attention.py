"""Models that attend to entries compressed from several tokens, and to a sliding window (DeepSeek-V4)."""

from __future__ import annotations

from typing import Any, Final

from roofcast.data.errors import InputError
from roofcast.data.model_config.architecture import read_experts
from roofcast.data.model_config.config_reader import ConfigReader
from roofcast.data.model_config.families import Family
from roofcast.data.model_config.layers import LAYER_NAMES
from roofcast.data.model_config.parameters.parameters import Shape
from roofcast.data.model_config.parameters.state_layers import sparse_indexer

COMPRESSED_TYPES: Final = frozenset({"deepseek_ref", "deepseek_v4"})

_INDEXED: Final = 4
"""Tokens to an entry in the layers whose indexer selects entries; their compressors overlap."""


def read_compressed(reader: ConfigReader, model_type: str, family: Family) -> tuple[dict[str, Any], Shape]:
    """Return the fields of the spec that a `Shape` does not have, and the shape, of one of `COMPRESSED_TYPES`.

    A layer whose entries stand for 4 tokens is one of full, sparse attention. One whose entries stand for more, or
    that has none, counts as sliding: its cache grows by 4 numbers a token. Key and value are one latent; the output
    projection in groups is given as a value width with as many weights.

    Raises
    ------
    InputError
        If a field is missing or wrong.
    """
    hidden = reader.count("hidden_size", high=200_000)
    n_layer = reader.count(*LAYER_NAMES, high=2_000)
    ratios = reader.numbers("compress_ratios")[:n_layer]
    if len(ratios) != n_layer or not all(0 <= r <= 100_000 for r in ratios):
        raise InputError("compress_ratios", f"must hold a ratio for each of {n_layer} layers")
    n_head = reader.count("num_attention_heads", high=10_000)
    head_dim = reader.count("head_dim", high=10_000)
    rope = reader.count("qk_rope_head_dim", high=head_dim - 1)
    experts: dict[str, Any] = read_experts(reader, family, model_type, hidden)
    window = reader.count("sliding_window")
    n_sparse = ratios.count(_INDEXED)
    output = _output_weights(reader, hidden, n_head * head_dim)
    shape = Shape(
        hidden_size=hidden,
        vocab_size=reader.count("vocab_size"),
        n_layer=n_layer,
        n_attention_layer=0,
        n_mlp_layer=0,
        n_moe_layer=n_layer,
        n_head=n_head,
        n_kv_head=1,
        head_dim=head_dim,
        attention="mla",
        kv_lora_rank=head_dim - rope,
        q_lora_rank=reader.count("q_lora_rank", high=100_000),
        qk_rope_head_dim=rope,
        v_head_dim=max(output // (n_head * hidden), 1),
        tie_word_embeddings=reader.flag("tie_word_embeddings"),
        n_param_further=_attention_weights(reader, hidden, n_head, head_dim, ratios) + n_layer * output,
        **{k: v for k, v in experts.items() if k != "n_shared_expert"},
    )
    return {
        "sliding_window": window,
        "n_sliding_layer": n_layer - n_sparse,
        "n_shared_expert": experts["n_shared_expert"],
        "n_sparse_layer": n_sparse,
        "sparse_top_k": reader.count("index_topk") + window if n_sparse else 0,
        "kv_compression": _INDEXED if n_sparse else 0,
    }, shape


def _output_weights(reader: ConfigReader, hidden: int, width: int) -> int:
    rank = reader.count("o_lora_rank", high=100_000)
    return width * rank + reader.count("o_groups", high=10_000) * rank * hidden


def _attention_weights(reader: ConfigReader, hidden: int, n_head: int, head_dim: int, ratios: list[int]) -> int:
    rank = reader.count("q_lora_rank", high=100_000)
    layer = (hidden + 1 + n_head * head_dim) * rank + hidden * head_dim + head_dim + n_head
    n_stream = reader.count("hc_mult", default=1, high=1_000)
    streams = 2 * (2 + n_stream) * n_stream * n_stream * hidden if n_stream > 1 else 0
    compressors = sum(_compressor(hidden, head_dim, ratio) for ratio in ratios if ratio)
    indexers = 0
    if _INDEXED in ratios:
        width = reader.count("index_head_dim", high=10_000)
        n_index_head = reader.count("index_n_heads", high=10_000)
        keys = _compressor(hidden, width, _INDEXED) - hidden * width - 2 * width
        indexers = ratios.count(_INDEXED) * (sparse_indexer(hidden, rank, n_index_head, width) + keys)
    return len(ratios) * (layer + streams) + compressors + indexers


def _compressor(hidden: int, width: int, ratio: int) -> int:
    """Return the weights that make one entry of a number of tokens: values, gates, positions and a norm.

    Examples
    --------
    Two values and two gates of width 8 from a token of width 16, and positions of 4 tokens, as the entries overlap:

    >>> _compressor(hidden=16, width=8, ratio=4)
    584
    """
    n_half = 2 if ratio == _INDEXED else 1
    return n_half * width * (2 * hidden + ratio) + width
