"""Names of the fields of a `config.json` by meaning: the first that has a value counts."""

import re
import tomllib
from pathlib import Path
from typing import Final

Names = tuple[str, ...]

HIDDEN: Final = ("hidden_size", "n_embd", "d_model", "n_embed", "dim")
LAYERS: Final = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEADS: Final = ("num_attention_heads", "n_head", "n_heads", "num_heads", "num_query_heads")
KV_HEADS: Final = (
    "num_key_value_heads", "num_kv_heads", "n_head_kv", "kv_n_heads", "n_kv_heads", "multi_query_group_num",
    "num_attention_groups",
)  # fmt: skip
HEAD_DIM: Final = ("head_dim", "attention_head_dim", "kv_channels", "d_kv")
VOCABULARY: Final = ("vocab_size", "padded_vocab_size")
CONTEXT: Final = (
    "max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length", "max_sequence_length",
    "model_max_length",
)  # fmt: skip
SCALING: Final = ("rope_scaling", "rope_parameters", "yarn")
WINDOW: Final = (
    "sliding_window", "sliding_window_size", "window_size", "attention_window_size", "local_attention_window",
    "local_window_size", "swa_window_size", "attention_window", "local_attention",
)  # fmt: skip
WINDOW_PATTERN: Final = ("sliding_window_pattern", "_sliding_window_pattern")
SLIDING_HEADS: Final = ("swa_num_attention_heads", "num_sliding_attention_heads")
SLIDING_KV_HEADS: Final = ("swa_num_key_value_heads",)
SLIDING_HEAD_DIM: Final = ("swa_head_dim",)
SLIDING_VALUE_DIM: Final = ("swa_v_head_dim",)
GLOBAL_HEAD_DIM: Final = ("global_head_dim",)
GLOBAL_KV_HEADS: Final = ("num_global_key_value_heads",)

WIDTHS: Final = ("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "d_ff", "hidden_dim")
DENSE_WIDTHS: Final = ("block_ff_dim", "intermediate_size_mlp", "dense_intermediate_size")
EXPERT_WIDTHS: Final = (
    "moe_intermediate_size", "expert_ffn_hidden_size", "expert_intermediate_size", "expert_hidden_dim",
)  # fmt: skip
EXPERTS: Final = (
    "num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts", "num_routed_experts",
)  # fmt: skip
CHOSEN: Final = (
    "num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "moe_top_k", "top_k_experts",
)  # fmt: skip
SHARED: Final = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
SHARED_WIDTHS: Final = (
    "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size",
    "share_expert_dim",
)  # fmt: skip
EXPERT_INPUT: Final = ("moe_latent_size", "routed_expert_hidden_size", "moe_hidden_size")
FIRST_SPARSE: Final = ("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index")
SPARSE_STEP: Final = ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval")
PREDICTION: Final = (
    "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "num_mtp_modules", "mtp_num_layers",
)  # fmt: skip

INDEX_HEADS: Final = ("index_n_heads", "indexer_n_heads", "sparse_num_index_heads")
INDEX_DIM: Final = ("index_head_dim", "indexer_head_dim", "sparse_index_dim")
INDEX_TOP_K: Final = ("index_topk", "indexer_budget")
INDEX_COMPRESSION: Final = ("index_kpool", "indexer_compress_ratio")

DELTA: Final = (
    "linear_num_value_heads", "linear_num_key_heads", "linear_key_head_dim", "linear_value_head_dim",
    "linear_conv_kernel_dim",
)  # fmt: skip
MAMBA_HEADS: Final = ("mamba_n_heads", "mamba_num_heads", "n_mamba_heads")
MAMBA_HEAD_DIM: Final = ("mamba_d_head", "mamba_head_dim")
MAMBA_GROUPS: Final = ("mamba_n_groups", "n_groups", "mamba_ngroups")
MAMBA_STATE: Final = ("mamba_d_state", "ssm_state_size")
MAMBA_TAPS: Final = ("mamba_d_conv", "conv_kernel", "mamba_conv_kernel_size")
STATE_DTYPE: Final = ("mamba_ssm_dtype", "mamba_ssm_cache_dtype", "ssm_dtype", "linear_state_dtype")
PASSES: Final = ("total_ut_steps", "loop_num_passes", "n_recurrent_loops")
STREAMS: Final = ("hc_mult", "hc_count")

TOWER_WIDTHS: Final = (
    "embed_dim", "hidden_size", "width", "vt_hidden_size", "d_model", "attention_dim", "hidden_dim",
)  # fmt: skip
TOWER_LAYERS: Final = (
    "num_hidden_layers", "depth", "num_layers", "layers", "vt_num_hidden_layers", "encoder_layers", "num_blocks",
    "conf_num_hidden_layers", "n_layers",
)  # fmt: skip
TOWER_MLP_WIDTHS: Final = ("intermediate_size", "vt_intermediate_size", "encoder_ffn_dim", "linear_units")
CONVOLUTIONS: Final = ("conv_kernel_size", "conf_conv_kernel_size", "kernel_size")
"""Fields of towers of sound whose layers are Conformers."""

MIXER_SCHEDULES: Final = (
    "layer_types", "layers_block_type", "hybrid_override_pattern", "hybrid_layer_pattern", "attn_type_list",
    "linear_attn_config", "attn_layer_indices", "full_attn_idxs", "local_layer_ids", "attn_layer_period",
    "full_attention_interval", "layer_group_size", "global_attn_every_n_layers", "compress_ratios", "block_configs",
    "max_window_layers", *WINDOW_PATTERN,
)  # fmt: skip
"""Fields that say which layers attend, slide or recur; those of the class count where a config has none of them."""

MLP_SCHEDULES: Final = (
    "mlp_layer_types", "moe_layer_freq", "moe_layers_enum", "mlp_only_layers", "expert_layer_period",
    *FIRST_SPARSE, *SPARSE_STEP,
)  # fmt: skip

QKV_BIAS: Final = ("attention_bias", "qkv_bias", "add_qkv_bias", "use_qkv_bias")
ALL_BIAS: Final = ("use_bias", "enable_bias")

_OTHER: Final = tomllib.loads(Path(__file__).with_name("other_fields.toml").read_text(encoding="utf-8"))

READ_FIELDS: Final = frozenset(_OTHER["read"].split()).union(
    HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, VOCABULARY, CONTEXT, WINDOW, WINDOW_PATTERN, SLIDING_HEADS,
    SLIDING_KV_HEADS, SLIDING_HEAD_DIM, SLIDING_VALUE_DIM, GLOBAL_HEAD_DIM, GLOBAL_KV_HEADS, WIDTHS, DENSE_WIDTHS,
    EXPERT_WIDTHS, EXPERTS, CHOSEN, SHARED, SHARED_WIDTHS, EXPERT_INPUT, FIRST_SPARSE, SPARSE_STEP, PREDICTION,
    INDEX_HEADS, INDEX_DIM, INDEX_TOP_K, INDEX_COMPRESSION, DELTA, MAMBA_HEADS, MAMBA_HEAD_DIM, MAMBA_GROUPS,
    MAMBA_STATE, MAMBA_TAPS, STATE_DTYPE, STREAMS, QKV_BIAS, ALL_BIAS,
)  # fmt: skip
"""Fields whose class defaults the builder stores."""

SIZES: Final = frozenset(
    (*HIDDEN, *LAYERS, *HEADS, *KV_HEADS, *HEAD_DIM, *VOCABULARY, *WIDTHS, *EXPERT_WIDTHS, *EXPERTS, *CHOSEN)
)
"""Fields that an answer names if they have the default of the class."""

_HARMLESS: Final = re.compile(_OTHER["harmless"], re.VERBOSE)


def is_understood(name: str) -> bool:
    """Return whether a field is read for some model, or does not describe layers, such as tokens and positions.

    Examples
    --------
    >>> [is_understood(name) for name in ("hidden_size", "rope_theta", "attention_dropout", "memory_bank_rank")]
    [True, True, True, False]
    """
    return name in READ_FIELDS or bool(_HARMLESS.search(name))
