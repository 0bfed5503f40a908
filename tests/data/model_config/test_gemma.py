"""Gemma 3n and 4: embeddings for every layer are looked up, global layers are wider, late layers share keys."""

from typing import Any

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.data.specs import ModelSpec


def kinds(n_layer: int, every: int) -> list[str]:
    return ["sliding_attention" if i % every else "full_attention" for i in range(1, n_layer + 1)]


GEMMA_4 = {
    "model_type": "gemma4_text", "head_dim": 256, "global_head_dim": 512, "vocab_size": 262144, "sliding_window": 512,
    "vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256, "max_position_embeddings": 131072,
}  # fmt: skip
E2B = GEMMA_4 | {
    "num_hidden_layers": 35, "hidden_size": 1536, "intermediate_size": 6144, "num_attention_heads": 8,
    "num_key_value_heads": 1, "num_kv_shared_layers": 20, "use_double_wide_mlp": True, "layer_types": kinds(35, 5),
}  # fmt: skip
E4B = GEMMA_4 | {
    "num_hidden_layers": 42, "hidden_size": 2560, "intermediate_size": 10240, "num_attention_heads": 8,
    "num_key_value_heads": 2, "num_kv_shared_layers": 18,
}  # fmt: skip
LARGE = GEMMA_4 | {
    "num_hidden_layers": 60, "hidden_size": 5376, "intermediate_size": 21504, "num_attention_heads": 32,
    "num_key_value_heads": 16, "num_global_key_value_heads": 4, "attention_k_eq_v": True, "sliding_window": 1024,
    "hidden_size_per_layer_input": 0,
}  # fmt: skip
MIXTURE = LARGE | {
    "num_hidden_layers": 30, "hidden_size": 2816, "intermediate_size": 2112, "num_attention_heads": 16,
    "num_key_value_heads": 8, "num_global_key_value_heads": 2, "enable_moe_block": True, "num_experts": 128,
    "top_k_experts": 8, "moe_intermediate_size": 704,
}  # fmt: skip
GEMMA_3N = {
    "model_type": "gemma3n_text", "num_hidden_layers": 35, "hidden_size": 2048, "intermediate_size": [16384] * 35,
    "num_attention_heads": 8, "num_key_value_heads": 2, "sliding_window": 512, "num_kv_shared_layers": 15,
}  # fmt: skip


def read(config: dict[str, Any], **changes: Any) -> ModelSpec:
    return model_from_config(config | changes, "ours")


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (E2B, "google/gemma-4-E2B-it"),
        (E4B, "google/gemma-4-E4B-it"),
        (LARGE, "google/gemma-4-31B-it"),
        (MIXTURE, "google/gemma-4-26B-A4B-it"),
    ],
)
def test_the_weights_are_those_of_the_catalogue(config: dict[str, Any], name: str) -> None:
    spec, expected = read(config), load_catalog().model(name)
    assert spec.n_param == pytest.approx(expected.n_param, rel=1e-4)
    assert spec.n_param_active == pytest.approx(expected.n_param_active, rel=1e-4)
    shared = ("n_layer", "n_sliding_layer", "sliding_window", "n_expert")
    assert [getattr(spec, field) for field in shared] == [getattr(expected, field) for field in shared]


def test_an_embedding_for_every_layer_is_looked_up() -> None:
    assert read(E2B).n_param_lookup == 35 * 262144 * 256
    assert read(E4B, vocab_size_per_layer_input=1000).n_param_lookup == 42 * 1000 * 256
    assert read(LARGE).n_param_lookup == 0
    for name, n_param in (("google/gemma-4-E2B-it", 35 * 262144 * 256), ("google/gemma-4-E4B-it", 42 * 262144 * 256)):
        assert load_catalog().model(name).n_param_lookup == n_param
    assert "look" in str(ModelSpec.model_fields["n_param_lookup"].description)


def test_a_dense_mlp_beside_experts_is_a_shared_one() -> None:
    for spec in (read(MIXTURE), load_catalog().model("google/gemma-4-26B-A4B-it")):
        assert (spec.n_shared_expert, spec.shared_expert_intermediate_size) == (1, 2112)
        assert (spec.n_dense_layer, spec.intermediate_size) == (0, 0)


def test_gemma_3n_is_counted_with_its_streams() -> None:
    spec = read(GEMMA_3N)
    assert spec.n_param == pytest.approx(6.87e9, rel=0.002)  # the text model, as its maker rounds it
    assert spec.n_param_lookup == 35 * 262144 * 256
    assert spec.n_sliding_layer == 28
    assert read(GEMMA_3N, intermediate_size=16384) == spec


def test_the_text_model_of_a_multimodal_config_is_read() -> None:
    assert read({"model_type": "gemma4", "text_config": E2B, "vision_config": {}}) == read(E2B)


@pytest.mark.parametrize(
    ("config", "changes", "field"),
    [
        (GEMMA_3N, {"intermediate_size": []}, "intermediate_size"),
        (GEMMA_3N, {"intermediate_size": [-1] * 35}, "intermediate_size"),
        (E2B, {"num_kv_shared_layers": 36}, "num_kv_shared_layers"),
        (E2B, {"vocab_size_per_layer_input": "many"}, "vocab_size_per_layer_input"),
        (E2B, {"hidden_size_per_layer_input": -1}, "hidden_size_per_layer_input"),
    ],
)
def test_an_invalid_field_is_refused_by_name(config: dict[str, Any], changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as refused:
        read(config, **changes)
    assert refused.value.field == field


def test_lookup_weights_beyond_the_total_are_refused() -> None:
    spec = read(E2B)
    with pytest.raises(InputError, match=r"n_param_lookup .* must be below n_param_active"):
        ModelSpec.parse(spec.model_dump(exclude={"layers"}) | {"n_param_lookup": spec.n_param})
