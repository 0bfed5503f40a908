"""Architecture of the text model of a `config.json`: decoder-only, or T5-like encoder-decoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from roofcast.data.errors import InputError
from roofcast.data.model_config.config_reader import ConfigReader
from roofcast.data.model_config.families import Family
from roofcast.data.model_config.hybrids import HYBRID_TYPES, read_hybrid
from roofcast.data.model_config.layers import LAYER_NAMES, Layers, expert_count, read_layers
from roofcast.data.model_config.parameters.gemma import GEMMA_4_TYPES, GEMMA_TYPES, common_width, with_gemma_weights
from roofcast.data.model_config.parameters.parameters import Bias, Shape
from roofcast.data.model_config.parameters.state_layers import sparse_indexer
from roofcast.data.model_config.parameters.uneven_layers import UNEVEN_TYPES, with_uneven_weights
from roofcast.data.specs import Attention

_HIDDEN: Final = ("hidden_size", "n_embd", "d_model", "n_embed")
_HEADS: Final = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_KV_HEADS: Final = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "kv_n_heads", "multi_query_group_num")
_WIDTHS: Final = ("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "d_ff")
_OWN_WIDTHS: Final[Mapping[str, tuple[str, ...]]] = {
    "granitemoehybrid": ("shared_intermediate_size",),
    "lfm2": ("block_ff_dim",),
    "lfm2_moe": (),
}
_LARGEST_MULTIPLE: Final = 100_000
CONTEXT_NAMES: Final = (
    "max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length", "max_sequence_length",
)  # fmt: skip
_QKV_BIAS: Final = ("attention_bias", "qkv_bias", "add_qkv_bias", "use_qkv_bias")
_GATED_QUERY: Final = ("qwen3_next", "qwen3_5")


def read_decoder(reader: ConfigReader, model_type: str, family: Family) -> tuple[dict[str, Any], Shape]:
    """Return the fields of the spec that a `Shape` does not have, and the shape, of a decoder-only model.

    Raises
    ------
    InputError
        If a field is missing or wrong.
    """
    hidden = reader.count(*_HIDDEN, high=200_000)
    is_hybrid = model_type in HYBRID_TYPES
    layers = read_hybrid(reader, model_type, hidden) if is_hybrid else read_layers(reader, family, model_type, hidden)
    n_head = reader.count(*_HEADS, high=10_000)
    n_kv_head = _kv_heads(reader, family, n_head)
    attention = _attention(reader, hidden, n_head, n_kv_head)
    experts: dict[str, Any] = read_experts(reader, family, model_type, hidden) if layers.n_moe else {}
    width = _dense_width(reader, family, model_type, hidden) if layers.n_mlp else 0
    shape = Shape(
        hidden_size=hidden,
        vocab_size=reader.count("vocab_size", "padded_vocab_size"),
        n_layer=layers.n_layer,
        n_attention_layer=layers.n_attention,
        n_mlp_layer=layers.n_mlp,
        n_moe_layer=layers.n_moe,
        n_linear_layer=layers.n_state,
        n_param_linear_layer=layers.n_param_state,
        n_head=n_head,
        n_kv_head=n_kv_head,
        intermediate_size=width,
        mlp_gated=family.gated,
        tie_word_embeddings=reader.flag("tie_word_embeddings", default=family.tied),
        bias=_bias(reader, family),
        n_norm=family.n_norm,
        qk_norm=family.qk_norm or reader.flag("use_qk_norm"),
        query_gated=model_type.startswith(_GATED_QUERY) or reader.flag("mla_use_output_gate"),
        n_position=_learned_positions(reader, family, model_type),
        embedding_size=reader.count_or_none("word_embed_proj_dim"),
        **attention,
        **_indexer(reader, hidden, layers.n_attention),
        **{k: v for k, v in experts.items() if k != "n_shared_expert"},
    )
    if model_type in GEMMA_TYPES:
        shape = with_gemma_weights(shape, reader, model_type)
    if model_type in UNEVEN_TYPES:
        shape = with_uneven_weights(shape, reader, model_type)
    return {**_layer_fields(layers, experts), **_sparse_fields(reader, layers.n_attention)}, shape


def _layer_fields(layers: Layers, experts: Mapping[str, int]) -> dict[str, Any]:
    return {
        "sliding_window": layers.window,
        "n_sliding_layer": layers.n_sliding,
        "n_linear_layer": layers.n_linear,
        "n_dense_layer": layers.n_layer - layers.n_moe if layers.n_moe else 0,
        "n_shared_expert": experts.get("n_shared_expert", 0),
    }


def _kv_heads(reader: ConfigReader, family: Family, n_head: int) -> int:
    if family.is_mqa and not reader.flag("new_decoder_architecture"):
        return 1 if reader.flag("multi_query", default=True) else n_head
    n_kv_head = reader.count(*_KV_HEADS, default=n_head, high=10_000)
    if n_kv_head > n_head:
        raise InputError("num_key_value_heads", f"must not exceed num_attention_heads ({n_head}), got {n_kv_head}")
    return n_kv_head


def _attention(reader: ConfigReader, hidden: int, n_head: int, n_kv_head: int) -> dict[str, Any]:
    if reader.has("kv_lora_rank"):
        rope = reader.count("qk_rope_head_dim", high=10_000)
        return {
            "attention": "mla",
            "kv_lora_rank": reader.count("kv_lora_rank", high=100_000),
            "q_lora_rank": reader.count_or_none("q_lora_rank", high=100_000),
            "qk_rope_head_dim": rope,
            "v_head_dim": reader.count("v_head_dim", high=10_000),
            "head_dim": reader.count("qk_nope_head_dim", high=10_000) + rope,
        }
    kind: Attention = "mha" if n_kv_head == n_head else "mqa" if n_kv_head == 1 else "gqa"
    value = {"v_head_dim": reader.count("v_head_dim", high=10_000)} if reader.has("v_head_dim") else {}
    return {"attention": kind, "head_dim": _head_dim(reader, hidden, n_head), **value}


def _indexer(reader: ConfigReader, hidden: int, n_attention: int) -> dict[str, Any]:
    if not reader.has("index_n_heads"):
        return {}
    kinds = reader.texts("indexer_types")
    n_param = sparse_indexer(
        hidden,
        reader.count("q_lora_rank", default=hidden, high=200_000),
        reader.count("index_n_heads", high=10_000),
        reader.count("index_head_dim", high=10_000),
    )
    return {"n_indexer_layer": kinds.count("full") if kinds else n_attention, "n_param_indexer": n_param}


def _sparse_fields(reader: ConfigReader, n_attention: int) -> dict[str, int]:
    blocks = ConfigReader(reader.section("sparse_attention_config"))
    if blocks.flag("use_sparse_attention"):
        n_sparse = min(sum(n > 0 for n in blocks.numbers("sparse_attention_freq")), n_attention)
        top_k = blocks.count("sparse_topk_blocks", high=100) * blocks.count("sparse_block_size", high=100_000)
        return {"n_sparse_layer": n_sparse, "sparse_top_k": top_k if n_sparse else 0}
    if not reader.has("index_topk"):
        return {}
    return {"n_sparse_layer": n_attention, "sparse_top_k": reader.count("index_topk", high=10_000_000)}


def _head_dim(reader: ConfigReader, hidden: int, n_head: int) -> int:
    if not reader.has("head_dim", "kv_channels", "d_kv", "attention_head_dim") and hidden % n_head:
        raise InputError("hidden_size", f"must be a multiple of {n_head} heads, got {hidden}; or give head_dim")
    return reader.count(
        "head_dim", "kv_channels", "d_kv", "attention_head_dim", default=hidden // n_head, high=10_000
    )


def _dense_width(reader: ConfigReader, family: Family, model_type: str, hidden: int) -> int:
    if model_type in GEMMA_TYPES:
        return common_width(reader)
    is_open = family.four_h or reader.has("n_embd")
    default = int(reader.number("expansion_ratio", default=4.0) * hidden) if is_open else None
    names = _OWN_WIDTHS.get(model_type, ("intermediate_size_mlp", "dense_intermediate_size"))
    own = next((name for name in names if reader.has(name)), "")
    width = reader.count(*((own,) if own else _WIDTHS), default=default, high=2_000_000)
    if model_type.startswith("lfm2") and reader.flag("block_auto_adjust_ff_dim", default=model_type == "lfm2"):
        return _adjusted_width(reader, width)
    return width // 2 if model_type == "qwen" else width


def _adjusted_width(reader: ConfigReader, width: int) -> int:
    multiple = reader.count("block_multiple_of", default=256, high=_LARGEST_MULTIPLE)
    factor = reader.number("block_ffn_dim_multiplier", default=1.0)
    minimum = int(factor * int(2 * width / 3))
    return -(-max(minimum, 1) // multiple) * multiple


def read_experts(reader: ConfigReader, family: Family, model_type: str, hidden: int) -> dict[str, int]:
    """Return the fields of routed and shared experts.

    Raises
    ------
    InputError
        If a field is missing or wrong.
    """
    n_expert = expert_count(reader)
    own = ("moe_intermediate_size", "expert_ffn_hidden_size")
    names = ("intermediate_size", *own) if family.expert_is_intermediate else (*own, "intermediate_size")
    width = reader.count(*names, "ffn_hidden_size", high=2_000_000)
    shared = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
    n_shared = reader.count(*shared, default=int(model_type == "llama4_text"), low=0, high=1_000)
    n_shared_width = reader.count(
        "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size",
        "share_expert_dim",
        default=common_width(reader) if model_type in GEMMA_4_TYPES else n_shared * width, low=0,
    )  # fmt: skip
    latent = reader.count("moe_latent_size", "routed_expert_hidden_size", default=hidden, high=hidden)
    return {
        "n_expert": n_expert,
        "n_expert_per_token": reader.count(
            "num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "moe_top_k", "top_k_experts",
            high=n_expert,
        ),
        "moe_intermediate_size": max(width * latent // hidden, 1),
        "n_shared_expert": max(n_shared, int(n_shared_width > 0)),
        "shared_expert_intermediate_size": n_shared_width,
        "n_param_latent": 2 * hidden * latent if latent < hidden else 0,
    }  # fmt: skip


def _bias(reader: ConfigReader, family: Family) -> Bias:
    if reader.has("no_bias"):
        return "none" if reader.flag("no_bias") else "all"
    if family.bias == "all":
        return "all" if reader.flag("use_bias", "enable_bias", default=True) else "none"
    if reader.has(*_QKV_BIAS):
        return "qkv" if reader.flag(*_QKV_BIAS) else "none"
    return family.bias


def _learned_positions(reader: ConfigReader, family: Family, model_type: str) -> int:
    is_learned = family.learned_positions or (
        model_type == "mpt"
        and not reader.flag("alibi")
        and not reader.flag("rope")
        and reader.flag("learned_pos_emb")
    )
    n_position = reader.count_or_none(*CONTEXT_NAMES) if is_learned else 0
    return n_position + 2 if model_type == "opt" else n_position


def read_t5(reader: ConfigReader, model_type: str) -> tuple[dict[str, Any], Shape]:
    """Return no further fields, and the shape, of a T5-like encoder-decoder.

    Raises
    ------
    InputError
        If a field is missing or wrong.
    """
    hidden = reader.count("d_model", "hidden_size", high=200_000)
    n_encoder_layer = reader.count("num_layers", *LAYER_NAMES, high=2_000)
    n_layer = reader.count("num_decoder_layers", default=n_encoder_layer, high=2_000)
    n_head = reader.count(*_HEADS, high=10_000)
    activation = reader.text("feed_forward_proj", default="relu" if model_type == "t5" else "gated-gelu")
    shape = Shape(
        hidden_size=hidden,
        vocab_size=reader.count("vocab_size"),
        n_layer=n_layer,
        n_attention_layer=n_layer,
        n_mlp_layer=n_layer,
        n_encoder_layer=n_encoder_layer,
        n_head=n_head,
        n_kv_head=n_head,
        head_dim=_head_dim(reader, hidden, n_head),
        intermediate_size=reader.count("d_ff", "intermediate_size", high=2_000_000),
        mlp_gated=activation.startswith("gated"),
        tie_word_embeddings=reader.flag("tie_word_embeddings", default=model_type in {"t5", "longt5"}),
    )
    return {}, shape
