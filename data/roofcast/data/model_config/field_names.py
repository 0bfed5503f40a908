"""Names of the fields of a `config.json` by meaning: the first that has a value counts."""

from __future__ import annotations

import re
from typing import Final

Names = tuple[str, ...]

HIDDEN: Final = ("hidden_size", "n_embd", "d_model", "n_embed", "dim")
LAYERS: Final = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEADS: Final = ("num_attention_heads", "n_head", "n_heads", "num_heads", "num_query_heads")
KV_HEADS: Final = (
    "num_key_value_heads", "num_kv_heads", "n_head_kv", "kv_n_heads", "n_kv_heads", "multi_query_group_num",
    "num_attention_groups",
)  # fmt: skip
HEAD_DIM: Final = ("head_dim", "kv_channels", "d_kv", "attention_head_dim")
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
EXPERT_INPUT: Final = ("moe_latent_size", "routed_expert_hidden_size")
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
MAMBA_HEADS: Final = ("mamba_n_heads", "mamba_num_heads")
MAMBA_HEAD_DIM: Final = ("mamba_d_head", "mamba_head_dim")
MAMBA_GROUPS: Final = ("mamba_n_groups", "n_groups")
MAMBA_STATE: Final = ("mamba_d_state", "ssm_state_size")
MAMBA_TAPS: Final = ("mamba_d_conv", "conv_kernel", "mamba_conv_kernel_size")
STATE_DTYPE: Final = ("mamba_ssm_dtype", "mamba_ssm_cache_dtype", "ssm_dtype", "linear_state_dtype")
STREAMS: Final = ("hc_mult", "hc_count")

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

_OTHER: Final = (
    "tie_word_embeddings", "kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim",
    "layer_types", "layers_block_type", "hybrid_override_pattern", "hybrid_layer_pattern", "mlp_layer_types",
    "full_attention_interval", "use_sliding_window", "max_window_layers", "attn_output_gate", "mla_use_output_gate",
    "attention_k_eq_v", "num_kv_shared_layers", "hidden_size_per_layer_input", "vocab_size_per_layer_input",
    "altup_num_inputs", "laurel_rank", "use_double_wide_mlp", "mlp_only_layers", "moe_layer_freq", "use_qk_norm",
    "mamba_expand", "mamba_d_ssm", "mamba_dt_rank", "conv_L_cache", "block_auto_adjust_ff_dim", "block_multiple_of",
    "block_ffn_dim_multiplier", "linear_head_dim", "linear_num_heads", "conv_kernel_size", "o_lora_rank", "o_groups",
    "indexer_types", "compress_ratios", "compress_rates", "hc_lowrank", "ple_layer_ids", "ple_embed_dim",
    "ngram_vocab_size_base", "attn_layer_period", "attn_layer_offset", "expert_layer_period", "expert_layer_offset",
    "attn_type_list", "layer_group_size", "group_norm_size", "global_attn_every_n_layers", "moe_layers_enum",
    "attn_layer_indices", "full_attn_idxs", "local_layer_ids", "enable_moe_block", "multi_query",
    "new_decoder_architecture", "word_embed_proj_dim", "depth", "patch_size", "feed_forward_proj",
    "num_decoder_layers", "short_conv_kernel_size",
    "ngram_size", "heads_per_ngram", "indexer_kv_heads", "num_attention_heads_per_layer",
    "num_key_value_heads_per_layer", "attention_other_setting", "sparse_attention_config", "linear_attn_config",
    "block_configs", "sconv_kernel_size", "expansion_ratio", "attn_config", "ffn_config", "moe", "dtype",
    "torch_dtype",
)  # fmt: skip

READ_FIELDS: Final = frozenset(_OTHER).union(
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

_HARMLESS: Final = re.compile(
    r"(^_)|(token_id|token_index|_eps|epsilon|dropout|_theta|_alpha|_beta|_limit|_floor|_clip|softcap\w*|cap|_coef"
    r"|_scale|_scaling|scaling_factor|multiplier|_factor|_range|_std|_bound|_dtype|_version|_path|_act|activation"
    r"|_func|_method|_base|_fn|type|dtype|_iters|_seed|_parts|_loss\w*|_labels?|_size_divisor)s?$"
    r"|^(rope|rotary|partial_rotary|mrope|router|routing|norm_topk|topk|scoring|aux_|use_cache|is_decoder|torch|auto"
    r"|quantization|bos|eos|pad|sep|unk|initializer|init_|pretraining|output_|return_|id2label|label2id|architectures"
    r"|transformers|attn_implementation|gradient|tokenizer|chunk_size_feed|num_beam|num_return|min_length|max_length"
    r"|top_[kp]$|temperature|repetition|no_repeat|length_penalty|early_stopping|do_sample|task|problem|finetuning"
    r"|add_cross|cross_attention_hidden|decoder_start|suppress|begin_suppress|bad_words|forced|prefix|pruned_heads"
    r"|tie_encoder|remove_invalid|typical|diversity|encoder_no_repeat|image_|video_|vision_|audio_|n_group$"
    r"|num_expert_group$|first_last_layers|seed$|use_|swiglu|mup|logits?_|final_logit|embedding_|residual_)"
)


def is_understood(name: str) -> bool:
    """Return whether a field is read for some model, or does not describe layers, such as tokens and positions.

    Examples
    --------
    >>> [is_understood(name) for name in ("hidden_size", "rope_theta", "attention_dropout", "memory_bank_rank")]
    [True, True, True, False]
    """
    return name in READ_FIELDS or bool(_HARMLESS.search(name))
