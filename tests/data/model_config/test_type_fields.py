"""Models whose fields have names of their own: state spaces, hybrids, loops, layers of several parts."""

from typing import Any

import pytest

from roofcast.data.layer_kinds import Attention, Module, Recurrent, of_kind
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.features.descriptors.model_descriptors import describe_model
from tests.data.model_config.model_configs import CONFIGS

DOTS3, OURO = CONFIGS["dots3"], CONFIGS["ouro-2.6b"]
OF_A_LAYER = {name.removeprefix("swa_"): value for name, value in DOTS3.items() if name.startswith("swa_")}
DOTS3_BY_LAYER = {name: value for name, value in DOTS3.items() if not name.startswith("swa_")} | {
    "per_layer_config": {f"{i:02}": OF_A_LAYER for i in range(46) if i > 1 and i % 4 != 1}
}


@pytest.mark.parametrize(
    ("config", "n_param", "state_byte", "kv_element"),
    [
        (CONFIGS["codestral-mamba-7b"], 7_285_403_648, 64 * (128 * 64 * 128 * 4 + 2 * 3 * (8192 + 2 * 8 * 128)), 0),
        (CONFIGS["mamba-2.8b"], 2_768_345_600, 64 * (16 * 5120 * 4 + 2 * 3 * 5120), 0),
        (CONFIGS["rwkv7-2.9b"], 2.9476e9, 32 * (40 * 64 * 64 * 4 + 2 * 2 * 2560), 0),
        (CONFIGS["zamba2-7b"], 7.36e9, 81 * (112 * 64 * 64 * 4 + 2 * 3 * (7168 + 2 * 2 * 64)), 13 * 2 * 32 * 224),
        (
            CONFIGS["zamba2-7b"] | {"kv_channels": 112},
            7.36e9,
            81 * (112 * 64 * 64 * 4 + 2 * 3 * 7424),
            13 * 2 * 32 * 224,
        ),
        (CONFIGS["plamo-2-1b"], 1.29e9, 8 * (32 * 128 * 64 * 4 + 2 * 3 * (4096 + 2 * 64)), 8 * 2 * 128),
        (CONFIGS["longcat-flash"], 560.7e9, 0, 56 * 576),
        (CONFIGS["longcat-flash-lite"], 68.5e9, 0, 28 * 576),
        (OURO, 2.667e9, 0, 4 * 48 * 2 * 2048),
        (CONFIGS["ling-3"], 7_893_388_544, 18 * (16 * 128 * 128 * 4 + 2 * 3 * 3 * 2048), 6 * 576),
        (CONFIGS["jais-2-8b"], 8_090_401_280, 0, 32 * 2 * 3328),
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
    spec = model_from_config(CONFIGS["ernie-4.5-vl-28b-a3b"], "m")
    assert (spec.n_param, spec.n_expert, spec.unread) == (21_825_436_160, 64, ())
    assert of_kind(spec.layers, Module) == [Module(role="tower", n=1, n_param_layer=27 * 64 * 3 * 2560 * 512)]


@pytest.mark.parametrize(
    ("config", "n_stored", "n_passed", "n_layer"),
    [
        (OURO, 48 * 51_380_224, 192 * 51_380_224, 192),
        (OURO | {"total_ut_steps": 1}, 48 * 51_380_224, 48 * 51_380_224, 48),
        (OURO | {"n_input_layers": 8, "n_output_layers": 8}, 48 * 51_380_224, 144 * 51_380_224, 144),
        (CONFIGS["zamba2-7b"], 7.02e9, 7.24e9 + 11 * 333_971_456, 81),
        (CONFIGS["hrm-text"], 32 * 30_670_848, 128 * 30_670_848, 128),
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


QWEN2_VL = {
    "model_type": "qwen2_vl", "depth": 32, "embed_dim": 1280, "hidden_size": 4096, "mlp_ratio": 4,
    "hidden_act": "quick_gelu",
}  # fmt: skip
QWEN3_VL = {
    "model_type": "qwen3_vl", "depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "spatial_merge_size": 2,
    "deepstack_visual_indexes": [8, 16, 24],
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
        (CONFIGS["phi-4-multimodal"], 5_574_460_384 - 3_836_021_760),
        (LLAMA | {"vision_config": QWEN2_VL}, 635e6),
        (LLAMA | {"vision_config": QWEN2_VL | {"spatial_merge_size": 2}}, 675e6),
        (LLAMA | {"vision_config": QWEN3_VL}, 576e6),
        (LLAMA | {"vision_config": PIXTRAL}, 408e6),
        (LLAMA | {"audio_config": GEMMA3N_AUDIO}, 685e6),
        (LLAMA | {"audio_config": WHISPER}, 637e6),
        ({"thinker_config": LLAMA | {"audio_config": WHISPER}}, 637e6),
    ],
    ids=["phi4mm", "width of its own", "merger", "three more", "gated", "conformer", "whisper", "omni"],
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
