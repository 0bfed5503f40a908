"""Published `config.json` files, cut to the fields that matter, and the weights that their checkpoints hold.

A total is that of the published safetensors files. Where these also hold buffers, an embedding twice, a vision tower
or prediction modules, it is our own count without them: `n_param_published_source` and `n_param_difference` of the
catalogue say so by model.
"""

from __future__ import annotations

from typing import Any

from tests.data.model_config.uneven_configs import UNEVEN

Config = dict[str, Any]


def a_config(**changes: object) -> Config:
    """Return a Llama config with changes; a value of ... removes the field."""
    fields: Config = {**LLAMA_3_1_8B, **changes}
    return {name: value for name, value in fields.items() if value is not ...}


def _sizes(*counts: int, **more: object) -> Config:
    """Return the fields of layers, width, MLP width, heads, key-value heads and vocabulary, and others."""
    n_layer, hidden, width, n_head, n_kv_head, vocab = counts
    return {
        "num_hidden_layers": n_layer,
        "hidden_size": hidden,
        "intermediate_size": width,
        "num_attention_heads": n_head,
        "num_key_value_heads": n_kv_head,
        "vocab_size": vocab,
        **more,
    }


LLAMA_3_1_8B: Config = _sizes(
    32, 4096, 14336, 32, 8, 128256, model_type="llama", torch_dtype="bfloat16", tie_word_embeddings=False,
    max_position_embeddings=131072,
)  # fmt: skip

_FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
_MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
_GPT_OSS_TYPES = ["sliding_attention", "full_attention"]
_DELTA_NET = {
    "linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_num_value_heads": 32,
    "linear_value_head_dim": 128, "head_dim": 256,
}  # fmt: skip
_NEMOTRON_NANO = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"

_KIMI_FULL = [4, 8, 12, 16, 20, 24, 27]

PUBLISHED: dict[str, tuple[Config, int]] = {
    "llama-3.1-8b": (LLAMA_3_1_8B, 8_030_261_248),
    "llama-2-7b": (_sizes(32, 4096, 11008, 32, 32, 32000, model_type="llama"), 6_738_415_616),
    "llama-3.2-1b": (
        _sizes(16, 2048, 8192, 32, 8, 128256, model_type="llama", head_dim=64, tie_word_embeddings=True),
        1_235_814_400,
    ),
    "llama-3.1-405b": (_sizes(126, 16384, 53248, 128, 8, 128256, model_type="llama"), 405_853_388_800),
    "qwen2.5-7b": (
        _sizes(28, 3584, 18944, 28, 4, 152064, model_type="qwen2", use_sliding_window=False, sliding_window=131072),
        7_615_616_512,
    ),
    "qwen2-0.5b": (_sizes(24, 896, 4864, 14, 2, 151936, model_type="qwen2", tie_word_embeddings=True), 494_032_768),
    "qwen3-8b": (_sizes(36, 4096, 12288, 32, 8, 151936, model_type="qwen3", head_dim=128), 8_190_735_360),
    "qwen3-30b-a3b": (
        _sizes(
            48, 2048, 6144, 32, 4, 151936, model_type="qwen3_moe", head_dim=128, num_experts=128,
            num_experts_per_tok=8, moe_intermediate_size=768, decoder_sparse_step=1, mlp_only_layers=[],
        ),
        30_532_122_624,
    ),
    "qwen2-57b-a14b": (
        _sizes(
            28, 3584, 18944, 28, 4, 151936, model_type="qwen2_moe", num_experts=64, num_experts_per_tok=8,
            moe_intermediate_size=2560, shared_expert_intermediate_size=20480,
        ),
        57_408_658_944,
    ),
    "qwen3-next-80b-a3b": (
        _sizes(
            48, 2048, 5120, 16, 2, 151936, model_type="qwen3_next", num_experts=512, num_experts_per_tok=10,
            moe_intermediate_size=512, shared_expert_intermediate_size=512, full_attention_interval=4, **_DELTA_NET,
        ),
        79_674_391_296,
    ),
    "mistral-7b-v0.1": (
        _sizes(32, 4096, 14336, 32, 8, 32000, model_type="mistral", sliding_window=4096), 7_241_732_096
    ),
    "mixtral-8x7b": (
        _sizes(32, 4096, 14336, 32, 8, 32000, model_type="mixtral", num_local_experts=8, num_experts_per_tok=2),
        46_702_792_704,
    ),
    "phi-3-mini-4k": (
        _sizes(
            32, 3072, 8192, 32, 32, 32064, model_type="phi3", sliding_window=2047, max_position_embeddings=4096
        ),
        3_821_079_552,
    ),
    "phi-2": (_sizes(32, 2560, 10240, 32, 32, 51200, model_type="phi", max_position_embeddings=2048), 2_779_683_840),
    "gemma-2b": (_sizes(18, 2048, 16384, 8, 1, 256000, model_type="gemma", head_dim=256), 2_506_172_416),
    "gemma-2-9b": (
        _sizes(42, 3584, 14336, 16, 8, 256000, model_type="gemma2", head_dim=256, sliding_window=4096),
        9_241_705_984,
    ),
    "gemma-3-27b": (
        {
            "model_type": "gemma3",
            "text_config": {
                "model_type": "gemma3_text", "num_hidden_layers": 62, "hidden_size": 5376, "head_dim": 128,
                "intermediate_size": 21504, "num_attention_heads": 32, "num_key_value_heads": 16,
                "sliding_window": 1024,
            },
            "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model"},
            "torch_dtype": "bfloat16",
        },
        27_009_330_432,
    ),
    "gpt-oss-20b": (
        _sizes(
            24, 2880, 2880, 64, 8, 201088, model_type="gpt_oss", head_dim=64, num_local_experts=32,
            num_experts_per_tok=4, sliding_window=128, layer_types=_GPT_OSS_TYPES * 12, attention_bias=True,
            quantization_config={"quant_method": "mxfp4"},
        ),
        20_914_757_184,
    ),
    "deepseek-v3": (
        _sizes(
            61, 7168, 18432, 128, 128, 129280, model_type="deepseek_v3", q_lora_rank=1536, n_routed_experts=256,
            num_experts_per_tok=8, n_shared_experts=1, moe_intermediate_size=2048, first_k_dense_replace=3,
            moe_layer_freq=1, quantization_config=_FP8, **_MLA,
        ),
        671_026_404_352,
    ),
    "deepseek-v2-lite": (
        _sizes(
            27, 2048, 10944, 16, 16, 102400, model_type="deepseek_v2", q_lora_rank=None, n_routed_experts=64,
            num_experts_per_tok=6, n_shared_experts=2, moe_intermediate_size=1408, first_k_dense_replace=1, **_MLA,
        ),
        15_706_484_224,
    ),
    "glm-4.5-air": (
        _sizes(
            46, 4096, 10944, 96, 8, 151552, model_type="glm4_moe", head_dim=128, n_routed_experts=128,
            num_experts_per_tok=8, n_shared_experts=1, moe_intermediate_size=1408, first_k_dense_replace=1,
            attention_bias=True,
        ),
        106_852_251_264,
    ),
    "llama-4-maverick": (
        {
            "model_type": "llama4",
            "text_config": _sizes(
                48, 5120, 8192, 40, 8, 202048, model_type="llama4_text", head_dim=128, intermediate_size_mlp=16384,
                num_local_experts=128, num_experts_per_tok=1, interleave_moe_layer_step=2,
                layer_types=(["chunked_attention"] * 3 + ["full_attention"]) * 12, max_position_embeddings=1048576,
            ),
        },
        400_711_848_960,
    ),
    "nemotron-3-nano-30b": (
        _sizes(
            52, 2688, 1856, 32, 2, 131072, model_type="nemotron_h", head_dim=128, mamba_num_heads=64,
            mamba_head_dim=64, n_groups=8, ssm_state_size=128, n_routed_experts=128, num_experts_per_tok=6,
            n_shared_experts=1, moe_intermediate_size=1856, moe_shared_expert_intermediate_size=3712,
            hybrid_override_pattern=_NEMOTRON_NANO,
        ),
        31_577_940_288,
    ),
    "gpt2": (
        {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257},
        124_439_808,
    ),
    "gpt-j-6b": (
        {
            "model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "n_positions": 2048,
            "vocab_size": 50400, "n_inner": None, "tie_word_embeddings": False,
        },
        6_050_882_784,
    ),
    "gpt-neox-20b": (_sizes(44, 6144, 24576, 64, 64, 50432, model_type="gpt_neox"), 20_554_567_680),
    "starcoder": (
        {
            "model_type": "gpt_bigcode", "n_embd": 6144, "n_layer": 40, "n_head": 48, "n_inner": 24576,
            "n_positions": 8192, "vocab_size": 49152, "multi_query": True,
        },
        15_517_456_384,
    ),
    "starcoder2-7b": (
        _sizes(32, 4608, 18432, 36, 4, 49152, model_type="starcoder2", use_bias=True, max_position_embeddings=16384),
        7_173_923_840,
    ),
    "mpt-7b": (
        {
            "model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32, "expansion_ratio": 4,
            "vocab_size": 50432, "no_bias": True, "max_seq_len": 2048, "attn_config": {"alibi": True},
        },
        6_649_286_656,
    ),
    "falcon-7b": (
        {
            "model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
            "num_kv_heads": 71, "multi_query": True, "new_decoder_architecture": False, "vocab_size": 65024,
        },
        6_921_720_704,
    ),
    "falcon-180b": (
        {
            "model_type": "falcon", "hidden_size": 14848, "num_hidden_layers": 80, "num_attention_heads": 232,
            "num_kv_heads": 8, "new_decoder_architecture": True, "vocab_size": 65024,
        },
        178_557_088_768,
    ),
    "opt-125m": (
        {
            "model_type": "opt", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
            "ffn_dim": 3072, "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 768,
        },
        125_239_296,
    ),
    "opt-350m": (
        {
            "model_type": "opt", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
            "ffn_dim": 4096, "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 512,
        },
        331_196_416,
    ),
    "bloom-7b1": (
        {"model_type": "bloom", "hidden_size": 4096, "n_layer": 30, "num_attention_heads": 32, "vocab_size": 250880},
        7_069_016_064,
    ),
    "flan-t5-xxl": (
        {
            "model_type": "t5", "d_model": 4096, "d_kv": 64, "d_ff": 10240, "num_layers": 24, "num_heads": 64,
            "num_decoder_layers": 24, "vocab_size": 32128, "feed_forward_proj": "gated-gelu",
            "is_encoder_decoder": True, "tie_word_embeddings": False,
        },
        11_135_332_352,
    ),
    "stablelm-2-1.6b": (
        _sizes(24, 2048, 5632, 32, 32, 100352, model_type="stablelm", use_qkv_bias=True), 1_644_515_328
    ),
    "olmo-7b": (_sizes(32, 4096, 11008, 32, 32, 50304, model_type="olmo"), 6_888_095_744),
    "c4ai-command-r-v01": (_sizes(40, 8192, 22528, 64, 64, 256000, model_type="cohere"), 34_980_831_232),
    "seed-oss-36b": (
        _sizes(64, 5120, 27648, 80, 8, 155136, model_type="seed_oss", head_dim=128, attention_bias=True),
        36_151_104_512,
    ),
    "granite-4.1-8b": (
        _sizes(40, 4096, 12800, 32, 8, 100352, model_type="granite", tie_word_embeddings=False), 8_791_592_960
    ),
    "nemotron-4-15b": (_sizes(32, 6144, 24576, 48, 8, 256000, model_type="nemotron"), 15_628_775_424),
    "deepseek-v3.2": (
        _sizes(
            61, 7168, 18432, 128, 128, 129280, model_type="deepseek_v32", q_lora_rank=1536, n_routed_experts=256,
            num_experts_per_tok=8, n_shared_experts=1, moe_intermediate_size=2048, first_k_dense_replace=3,
            index_n_heads=64, index_head_dim=128, index_topk=2048, quantization_config=_FP8, **_MLA,
        ),
        671_877_929_216,
    ),
    "glm-5": (
        _sizes(
            78, 6144, 12288, 64, 64, 154880, model_type="glm_moe_dsa", head_dim=64, n_routed_experts=256,
            num_experts_per_tok=8, n_shared_experts=1, moe_intermediate_size=2048, first_k_dense_replace=3,
            q_lora_rank=2048, kv_lora_rank=512, qk_nope_head_dim=192, qk_rope_head_dim=64, v_head_dim=256,
            index_n_heads=32, index_head_dim=128, index_topk=2048,
        ),
        743_911_199_232,
    ),
    "nemotron-3-ultra": (
        _sizes(
            108, 8192, 5120, 64, 2, 131072, model_type="nemotron_h", head_dim=128, mamba_num_heads=256,
            mamba_head_dim=64, n_groups=8, ssm_state_size=128, n_routed_experts=512, num_experts_per_tok=22,
            n_shared_experts=1, moe_intermediate_size=5120, moe_shared_expert_intermediate_size=10240,
            moe_latent_size=2048, hybrid_override_pattern="ME" * 48 + "*" * 12,
        ),
        549_308_993_536,
    ),
    "jamba-v0.1": (
        _sizes(
            32, 4096, 14336, 32, 8, 65536, model_type="jamba", num_experts=16, num_experts_per_tok=2,
            attn_layer_period=8, attn_layer_offset=4, expert_layer_period=2, expert_layer_offset=1,
            mamba_d_state=16, mamba_d_conv=4, mamba_expand=2, mamba_dt_rank=256,
        ),
        51_570_323_328,
    ),
    "bamba-9b": (
        _sizes(
            32, 4096, 14336, 32, 8, 128256, model_type="bamba", attn_layer_indices=[9, 18, 27], mamba_n_heads=128,
            mamba_d_head="auto", mamba_n_groups=1, mamba_d_state=128, mamba_expand=2,
        ),
        9_780_229_120,
    ),
    "falcon-h1-7b": (
        _sizes(
            44, 3072, 12288, 12, 2, 130049, model_type="falcon_h1", head_dim=128, mamba_d_ssm=3072, mamba_n_heads=24,
            mamba_d_head=128, mamba_n_groups=1, mamba_d_state=256,
        ),
        7_585_654_784,
    ),
    "granite-4.0-h-tiny": (
        _sizes(
            40, 1536, 512, 12, 4, 100352, model_type="granitemoehybrid", num_local_experts=64, num_experts_per_tok=6,
            layer_types=(["mamba"] * 5 + ["attention"] + ["mamba"] * 4) * 4, shared_intermediate_size=1024,
            mamba_n_heads=48, mamba_d_head=64, mamba_n_groups=1, mamba_d_state=128, mamba_expand=2,
        ),
        6_939_037_248,
    ),
    "kimi-linear-48b-a3b": (
        _sizes(
            27, 2304, 9216, 32, 32, 163840, model_type="kimi_linear", head_dim=72, q_lora_rank=None, num_experts=256,
            num_experts_per_token=8, num_shared_experts=1, moe_intermediate_size=1024, first_k_dense_replace=1,
            linear_attn_config={
                "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4, "full_attn_layers": _KIMI_FULL,
                "kda_layers": [i for i in range(1, 28) if i not in _KIMI_FULL],
            },
            **_MLA,
        ),
        49_122_681_728,
    ),
    "lfm2.5-2.6b": (
        _sizes(
            30, 2048, 10752, 32, 8, 128000, model_type="lfm2", layer_types=["conv"] * 22 + ["full_attention"] * 8,
            conv_L_cache=3, block_auto_adjust_ff_dim=False,
        ),
        2_697_198_592,
    ),
    "lfm2-1.2b": (
        _sizes(
            16, 2048, 12288, 32, 8, 65536, model_type="lfm2", full_attn_idxs=[2, 5, 8, 10, 12, 14], conv_L_cache=3,
            block_auto_adjust_ff_dim=True, block_multiple_of=256, block_ffn_dim_multiplier=1.0,
        ),
        1_170_340_608,
    ),
    "minimax-text-01": (
        _sizes(
            80, 6144, 9216, 64, 8, 200064, model_type="minimax_text_01", head_dim=128, num_local_experts=32,
            num_experts_per_tok=2, attn_type_list=[0, 0, 0, 0, 0, 0, 0, 1] * 10,
        ),
        456_089_655_296,
    ),
    "ring-mini-linear-2.0": (
        _sizes(
            20, 2048, 5120, 16, 4, 157184, model_type="bailing_moe_linear", layer_group_size=5, group_norm_size=4,
            num_experts=256, num_experts_per_tok=8, num_shared_experts=1, moe_intermediate_size=512,
            first_k_dense_replace=1, use_qk_norm=True, head_dim=128,
        ),
        16_423_000_000,
    ),
    "hunyuan-a13b": (
        _sizes(
            32, 4096, 3072, 32, 8, 128167, model_type="hunyuan_v1_moe", num_experts=64, moe_topk=[8] * 32,
            num_shared_expert=[1] * 32, moe_intermediate_size=[3072] * 32, use_qk_norm=True, use_mla=False,
            tie_word_embeddings=True,
        ),
        80_393_183_232,
    ),
    "mistral-large-3-params": (
        {
            "dim": 7168, "n_layers": 61, "hidden_dim": 16384, "n_heads": 128, "n_kv_heads": 128, "vocab_size": 131072,
            "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
            "v_head_dim": 128, "moe": {
                "first_k_dense_replace": 3, "num_experts": 128, "num_experts_per_tok": 4, "expert_hidden_dim": 4096,
                "num_shared_experts": 1,
            },
        },
        673_421_000_000,
    ),
    "dbrx": (
        {
            "model_type": "dbrx", "d_model": 6144, "n_layers": 40, "n_heads": 48, "vocab_size": 100352,
            "max_seq_len": 32768, "attn_config": {"kv_n_heads": 8, "clip_qkv": 8},
            "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
        },
        131_596_529_664,
    ),
    **UNEVEN,
}  # fmt: skip
