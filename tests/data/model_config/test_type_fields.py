"""Models whose fields have names of their own: state spaces, hybrids, loops, layers of several parts."""

from typing import Any

import pytest

from roofcast.data.layer_kinds import Attention, Module, Recurrent, of_kind
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.features.descriptors.model_descriptors import describe_model

MAMBA2 = {"model_type": "mamba2", "conv_kernel": 4, "expand": 2, "head_dim": 64, "state_size": 128}
BLOCKS = ["hybrid" if i in {6, *range(11, 78, 6)} else "mamba" for i in range(81)]
ZAMBA2 = {
    "model_type": "zamba2", "hidden_size": 3584, "intermediate_size": 14336, "attention_head_dim": 224,
    "layers_block_type": BLOCKS, "adapter_rank": 128, "mamba_headdim": 64, "mamba_ngroups": 2, "mamba_d_state": 64,
    "n_mamba_heads": 112, "num_attention_heads": 32, "num_hidden_layers": 81, "num_key_value_heads": 32,
    "num_mem_blocks": 2, "vocab_size": 32000,
}  # fmt: skip
PLAMO2 = {
    "model_type": "plamo2", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16,
    "num_key_value_heads": 1, "hidden_size_per_head": 128, "attention_window_size": 2048, "mamba_d_state": 64,
    "mamba_num_heads": 32, "mamba_step": 2, "intermediate_size": 8192, "vocab_size": 100000,
}  # fmt: skip
RWKV7 = {
    "model_type": "rwkv7", "hidden_size": 2560, "num_hidden_layers": 32, "head_dim": 64, "intermediate_size": 10240,
    "vocab_size": 65536, "a_low_rank_dim": 96, "decay_low_rank_dim": 96, "gate_low_rank_dim": 320,
    "v_low_rank_dim": 64, "tie_word_embeddings": False,
}  # fmt: skip
CODESTRAL = {
    **MAMBA2, "num_hidden_layers": 64, "hidden_size": 4096, "num_heads": 128, "n_groups": 8, "vocab_size": 32768,
    "tie_word_embeddings": False,
}  # fmt: skip
MAMBA = {
    "model_type": "mamba", "num_hidden_layers": 64, "hidden_size": 2560, "intermediate_size": 5120,
    "state_size": 16, "time_step_rank": 160, "vocab_size": 50280, "tie_word_embeddings": True,
}  # fmt: skip
LATENT = {
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
}  # fmt: skip
LONGCAT = {
    "model_type": "longcat_flash", "hidden_size": 6144, "num_layers": 28, "num_attention_heads": 64, **LATENT,
    "ffn_hidden_size": 12288, "expert_ffn_hidden_size": 2048, "n_routed_experts": 512, "zero_expert_num": 256,
    "moe_topk": 12, "vocab_size": 131072,
}  # fmt: skip
LONGCAT_LITE = LONGCAT | {
    "model_type": "longcat_flash_ngram", "hidden_size": 3072, "num_layers": 14, "num_attention_heads": 32,
    "ffn_hidden_size": 6144, "expert_ffn_hidden_size": 1024, "n_routed_experts": 256, "zero_expert_num": 128,
    "ngram_vocab_size_ratio": 78, "emb_neighbor_num": 4, "emb_split_num": 4,
}  # fmt: skip
OURO = {
    "model_type": "ouro", "hidden_size": 2048, "num_hidden_layers": 48, "intermediate_size": 5632, "head_dim": 128,
    "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 49152, "total_ut_steps": 4,
}  # fmt: skip
LING3 = {
    "model_type": "bailing_hybrid", "hidden_size": 1536, "intermediate_size": 4608, "num_hidden_layers": 24,
    "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 128, "vocab_size": 157184, **LATENT,
    "q_lora_rank": 256, "layer_group_size": 4, "short_conv_kernel_size": 4, "no_kda_lora": True, "num_experts": 128,
    "num_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 512, "first_k_dense_replace": 1,
    "moe_shared_expert_intermediate_size": 512, "tie_word_embeddings": False,
}  # fmt: skip
JAIS2 = {
    "model_type": "jais2", "hidden_size": 3328, "intermediate_size": 26624, "num_hidden_layers": 32, "head_dim": 128,
    "num_attention_heads": 26, "num_key_value_heads": 26, "vocab_size": 150272, "tie_word_embeddings": False,
}  # fmt: skip
DOTS3 = {
    "model_type": "dots3_note_text", "hidden_size": 5120, "intermediate_size": 13824, "num_hidden_layers": 46,
    "num_attention_heads": 128, "num_key_value_heads": 128, **LATENT, "q_lora_rank": 1024, "sliding_window": 512,
    "swa_num_attention_heads": 64, "swa_num_key_value_heads": 64, "swa_kv_lora_rank": 1024,
    "swa_qk_nope_head_dim": 192, "n_routed_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 1536,
    "n_shared_experts": 1, "first_k_dense_replace": 1, "vocab_size": 152064, "index_topk": 2048,
    "index_n_heads": 64, "index_head_dim": 128, "tie_word_embeddings": False,
    "layer_types": ["sliding_attention" if i > 1 and i % 4 != 1 else "indexed_attention" for i in range(46)],
}  # fmt: skip
OF_A_LAYER = {name.removeprefix("swa_"): value for name, value in DOTS3.items() if name.startswith("swa_")}
DOTS3_BY_LAYER = {name: value for name, value in DOTS3.items() if not name.startswith("swa_")} | {
    "per_layer_config": {f"{i:02}": OF_A_LAYER for i in range(46) if i > 1 and i % 4 != 1}
}


@pytest.mark.parametrize(
    ("config", "n_param", "state_byte", "kv_element"),
    [
        (CODESTRAL, 7_285_403_648, 64 * (128 * 64 * 128 * 4 + 2 * 3 * (8192 + 2 * 8 * 128)), 0),
        (MAMBA, 2_768_345_600, 64 * (16 * 5120 * 4 + 2 * 3 * 5120), 0),
        (RWKV7, 2.9476e9, 32 * (40 * 64 * 64 * 4 + 2 * 2 * 2560), 0),
        (ZAMBA2, 7.36e9, 81 * (112 * 64 * 64 * 4 + 2 * 3 * (7168 + 2 * 2 * 64)), 13 * 2 * 32 * 224),
        (ZAMBA2 | {"kv_channels": 112}, 7.36e9, 81 * (112 * 64 * 64 * 4 + 2 * 3 * 7424), 13 * 2 * 32 * 224),
        (PLAMO2, 1.29e9, 8 * (32 * 128 * 64 * 4 + 2 * 3 * (4096 + 2 * 64)), 8 * 2 * 128),
        (LONGCAT, 560.7e9, 0, 56 * 576),
        (LONGCAT_LITE, 68.5e9, 0, 28 * 576),
        (OURO, 2.667e9, 0, 4 * 48 * 2 * 2048),
        (LING3, 7_893_388_544, 18 * (16 * 128 * 128 * 4 + 2 * 3 * 3 * 2048), 6 * 576),
        (JAIS2, 8_090_401_280, 0, 32 * 2 * 3328),
        (DOTS3, 279_551_718_016, 0, 13 * 576 + 33 * 1088),
        (DOTS3_BY_LAYER, 279_551_718_016, 0, 13 * 576 + 33 * 1088),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_states_and_cache_of_published_models(
    config: dict[str, Any], n_param: float, state_byte: int, kv_element: int
) -> None:
    spec = model_from_config(config, "m")
    assert spec.n_param == pytest.approx(n_param, rel=0.005)
    assert sum(k.n * k.state_byte for k in of_kind(spec.layers, Recurrent)) == state_byte
    assert sum(k.n * k.cache_width for k in of_kind(spec.layers, Attention)) == kv_element


def test_experts_of_images_are_beside_the_text_model() -> None:
    config = {
        "model_type": "ernie4_5_moe_vl", "hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 28,
        "num_attention_heads": 20, "num_key_value_heads": 4, "vocab_size": 103424, "moe_num_experts": [64, 64],
        "moe_intermediate_size": [1536, 512], "moe_k": 6, "moe_layer_start_index": [1, 1],
        "moe_layer_end_index": [29, 28], "moe_num_shared_experts": 2, "tie_word_embeddings": True,
    }  # fmt: skip
    spec = model_from_config(config, "ernie-4.5-vl-28b-a3b")
    assert (spec.n_param, spec.n_expert, spec.unread) == (21_825_436_160, 64, ())
    assert of_kind(spec.layers, Module) == [Module(role="tower", n=1, n_param_layer=27 * 64 * 3 * 2560 * 512)]


HRM = {
    "model_type": "hrm_text", "hidden_size": 1536, "intermediate_size": 4096, "num_hidden_layers": 128,
    "num_attention_heads": 12, "head_dim": 128, "num_layers_per_stack": 16, "H_cycles": 2, "L_cycles": 3,
    "vocab_size": 151808, "tie_word_embeddings": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "n_stored", "n_passed", "n_layer"),
    [
        (OURO, 48 * 51_380_224, 192 * 51_380_224, 192),
        (OURO | {"total_ut_steps": 1}, 48 * 51_380_224, 48 * 51_380_224, 48),
        (OURO | {"n_input_layers": 8, "n_output_layers": 8}, 48 * 51_380_224, 144 * 51_380_224, 144),
        (ZAMBA2, 7.02e9, 7.24e9 + 11 * 333_971_456, 81),
        (HRM, 32 * 30_670_848, 128 * 30_670_848, 128),
    ],
    ids=["ouro", "one pass", "loop inside", "shared blocks", "stacks in cycles"],
)
def test_memory_holds_weights_once_and_each_pass_reads_them(
    config: dict[str, Any], n_stored: float, n_passed: float, n_layer: int
) -> None:
    spec = model_from_config(config, "m")
    d = describe_model(spec)
    assert (spec.n_layer, spec.unread) == (n_layer, ())
    assert d["model.n_param_linear"] == pytest.approx(n_stored, rel=0.01)
    mixer = n_layer * (d["model.mixer_in_width"] + d["model.mixer_out_width"])
    mlp = d["model.n_mlp_layer"] * d["model.n_mlp_matrix"] * d["model.mlp_width"]
    assert (mixer + mlp) * spec.hidden_size == pytest.approx(n_passed, rel=0.01)
    assert d["model.n_param_dense"] == pytest.approx(n_passed + spec.vocab_size * spec.hidden_size, rel=0.03)


PHI4_MULTIMODAL = {
    "model_type": "phi4mm", "hidden_size": 3072, "num_hidden_layers": 32, "num_attention_heads": 24,
    "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 200064, "tie_word_embeddings": True,
    "embd_layer": {"embedding_cls": "image_audio"}, "img_processor": None, "full_attn_mod": 1,
    "vision_lora": {"r": 256, "lora_alpha": 512}, "speech_lora": {"r": 320, "lora_alpha": 640},
    "audio_processor": {
        "name": "cascades",
        "config": {"attention_dim": 1024, "linear_units": 1536, "num_blocks": 24, "kernel_size": 3},
    },
}  # fmt: skip
QWEN2_VL = {
    "model_type": "qwen2_vl", "depth": 32, "embed_dim": 1280, "hidden_size": 4096, "mlp_ratio": 4,
    "hidden_act": "quick_gelu",
}  # fmt: skip
PIXTRAL = {"model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24}
GEMMA3N_AUDIO = {
    "model_type": "gemma3n_audio", "hidden_size": 1536, "conf_num_hidden_layers": 12, "conf_conv_kernel_size": 5,
}  # fmt: skip
WHISPER = {"d_model": 1280, "encoder_layers": 32, "encoder_ffn_dim": 5120}
LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 32} | {
    "intermediate_size": 11008, "vocab_size": 32000,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "n_beside"),
    [
        (PHI4_MULTIMODAL, 5_574_460_384 - 3_836_021_760),
        (LLAMA | {"vision_config": QWEN2_VL}, 635e6),
        (LLAMA | {"vision_config": PIXTRAL}, 408e6),
        (LLAMA | {"audio_config": GEMMA3N_AUDIO}, 685e6),
        (LLAMA | {"audio_config": WHISPER}, 637e6),
        ({"thinker_config": LLAMA | {"audio_config": WHISPER}}, 637e6),
    ],
    ids=["phi4mm", "width of its own", "gated", "conformer", "whisper", "omni"],
)
def test_towers_of_images_and_sound_and_adapters_are_beside_the_text_model(
    config: dict[str, Any], n_beside: float
) -> None:
    spec = model_from_config(config, "m")
    modules = of_kind(spec.layers, Module)
    assert sum(k.n_param(spec.hidden_size) for k in modules) == pytest.approx(n_beside, rel=0.02)
    assert spec.unread == ()


@pytest.mark.parametrize("stated", [{}, {"swa_num_key_value_heads": 8}])
def test_layers_of_a_window_have_heads_of_their_own(stated: dict[str, int]) -> None:
    config = {"model_type": "mimo_v2_flash", "hidden_size": 4096, "num_hidden_layers": 48, "vocab_size": 152576}
    spec = model_from_config(config | stated, "m")
    assert [(k.n, k.n_kv_head, k.window) for k in of_kind(spec.layers, Attention)] == [(9, 4, 0), (39, 8, 129)]
    assert spec.n_param == pytest.approx(308.78e9, rel=1e-4)


def test_a_loop_that_writes_its_cache_in_one_pass_has_one() -> None:
    spec = model_from_config(OURO | {"recurrent_kv_cache_mode": "last_loop"}, "m")
    assert sum(k.n * k.growing_width for k in of_kind(spec.layers, Attention)) == 48 * 2 * 2048
