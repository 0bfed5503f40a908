"""Published `config.json` files of models whose layers differ in their attention or their MLP, as `model_configs`."""

from __future__ import annotations

from typing import Any

_V4: dict[str, Any] = {
    "model_type": "deepseek_v4", "num_key_value_heads": 1, "head_dim": 512, "qk_rope_head_dim": 64,
    "o_lora_rank": 1024, "index_n_heads": 64, "index_head_dim": 128, "sliding_window": 128, "hc_mult": 4,
    "n_shared_experts": 1, "num_experts_per_tok": 6, "vocab_size": 129280, "max_position_embeddings": 1048576,
    "expert_dtype": "fp4", "quantization_config": {"quant_method": "fp8"}, "tie_word_embeddings": False,
}  # fmt: skip

_MLP: tuple[tuple[float, bool, int], ...] = (
    (5.25, True, 48), (1.3125, False, 10), (1.0, False, 8), (0.5, False, 6), (2.625, False, 5), (2.625, True, 1),
    (3.28125, False, 1), (5.25, False, 1),
)  # fmt: skip
"""Relative width of the MLP, whether there is attention, and the number of such blocks."""

UNEVEN: dict[str, tuple[dict[str, Any], int]] = {
    "deepseek-v4-flash": (
        {
            **_V4, "hidden_size": 4096, "num_hidden_layers": 43, "num_attention_heads": 64, "q_lora_rank": 1024,
            "o_groups": 8, "index_topk": 512, "n_routed_experts": 256, "moe_intermediate_size": 2048,
            "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],
        },
        284_332_162_368,
    ),
    "deepseek-v4-pro": (
        {
            **_V4, "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128, "q_lora_rank": 1536,
            "o_groups": 16, "index_topk": 1024, "n_routed_experts": 384, "moe_intermediate_size": 3072,
            "compress_ratios": [128, *[128, 4] * 30, 0],
        },
        1_572_997_061_504,
    ),
    "laguna-xs.2": (
        {
            "model_type": "laguna", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 40,
            "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 100352,
            "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512,
            "shared_expert_intermediate_size": 512, "sliding_window": 512, "tie_word_embeddings": False,
            "layer_types": ["full_attention", *["sliding_attention"] * 3] * 10,
            "mlp_layer_types": ["dense", *["sparse"] * 39], "num_attention_heads_per_layer": [48, 64, 64, 64] * 10,
        },
        33_442_607_104,
    ),
    "mimo-v2-flash": (
        {
            "model_type": "mimo_v2_flash", "hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 48,
            "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128,
            "vocab_size": 152576, "n_routed_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
            "sliding_window": 128, "swa_num_key_value_heads": 8, "tie_word_embeddings": False,
            "hybrid_layer_pattern": [0, 1, 1, 1, 1, 0, *[1, 1, 1, 1, 1, 0] * 7],
            "moe_layer_freq": [0, *[1] * 47],
        },
        308_778_766_336,
    ),
    "nemotron-super-49b": (
        {
            "model_type": "nemotron-nas", "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64,
            "vocab_size": 128256, "tie_word_embeddings": False,
            "block_configs": [
                {
                    "attention": {"no_op": not attends, "n_heads_in_group": 8 if attends else None},
                    "ffn": {"no_op": False, "ffn_mult": width},
                }
                for width, attends, n_block in _MLP for _ in range(n_block)
            ],
        },
        49_867_399_168,
    ),
    "step-3.7-flash": (
        {
            "model_type": "step3p7", "hidden_size": 4096, "intermediate_size": 11264, "num_hidden_layers": 45,
            "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128896,
            "num_experts": 288, "num_experts_per_tok": 8, "moe_intermediate_size": 1280, "share_expert_dim": 1280,
            "n_shared_experts": 1, "first_k_dense_replace": 3, "sliding_window": 512,
            "layer_types": ["full_attention", *(["sliding_attention"] * 3 + ["full_attention"]) * 11],
            "attention_other_setting": {"num_attention_heads": 96},
        },
        196_956_118_272,
    ),
}  # fmt: skip
