"""State-space models without attention, and hybrids whose fields have names of their own."""

from typing import Any

import pytest

from roofcast.data.layer_kinds import Attention, Recurrent, of_kind
from roofcast.data.model_config.huggingface import model_from_config

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


@pytest.mark.parametrize(
    ("config", "n_param", "state_byte", "kv_element"),
    [
        (CODESTRAL, 7_285_403_648, 64 * (128 * 64 * 128 * 4 + 2 * 3 * (8192 + 2 * 8 * 128)), 0),
        (MAMBA, 2_768_345_600, 64 * (16 * 5120 * 4 + 2 * 3 * 5120), 0),
        (RWKV7, 2.9476e9, 32 * (40 * 64 * 64 * 4 + 2 * 2 * 2560), 0),
        (ZAMBA2, 7.36e9, 81 * (112 * 64 * 64 * 4 + 2 * 3 * (7168 + 2 * 2 * 64)), 13 * 2 * 32 * 224),
        (PLAMO2, 1.29e9, 8 * (32 * 128 * 64 * 4 + 2 * 3 * (4096 + 2 * 64)), 8 * 2 * 128),
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
