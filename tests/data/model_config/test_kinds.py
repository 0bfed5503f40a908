"""Kinds of layers of configs whose fields are new, missing or off."""

from typing import Any

import pytest

from roofcast.data.errors import InputError
from roofcast.data.layer_kinds import Attention, Lookup, Recurrent, of_kind
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.data.specs import ModelSpec
from tests.data.model_config.model_configs import CONFIGS, a_config

DELTA = {
    "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
}  # fmt: skip
KDA = {"linear_num_heads": 64, "linear_head_dim": 128}
MIXED = ["linear_attention", "full_attention"] * 16
NEW = ["hybrid_sliding", "indexed_attention"] * 16
SLIDING = {"sliding_window_size": 512, "swa_num_key_value_heads": 16, "swa_head_dim": 64}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 0, "qk_nope_head_dim": 128, "v_head_dim": 128}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"layer_types": MIXED, **DELTA}, {"state": 32 * 128 * 128 * 4 + 2 * 3 * 8192, "kv": 2048}),
        (
            {"layer_types": MIXED, **DELTA, "mamba_ssm_dtype": "bfloat16"},
            {"state": 32 * 128 * 128 * 2 + 2 * 3 * 8192},
        ),
        ({"layer_types": MIXED, **KDA}, {"state": 64 * 128 * 128 * 4 + 2 * 3 * 3 * 8192}),
        ({"layer_types": NEW, **SLIDING}, {"kv": 2048, "window": 16 * 128}),
        (LATENT, {"kv": 512}),
        ({"kv_lora_rank": 0, "num_experts": 0, "index_topk": 0, "linear_num_value_heads": 0}, {"kv": 2048}),
        ({"num_key_value_heads": [8] * 16 + [4] * 16}, {"kv": 2048}),
        ({"num_kv_shared_layers": 8}, {"kv": 2048}),
        ({"sliding_window": [512, 0] * 16}, {"kv": 2048, "window": 2048}),
        ({"kv_lora_rank": 512, "use_mla": False}, {"kv": 2048}),
        ({"layer_group_size": 5, "group_norm_size": 4}, {"state": 32 * 128 * 128 * 4, "kv": 2048}),
        ({"sliding_window_pattern": "LLLG", "sliding_window": 512}, {"kv": 2048, "window": 2048}),
        ({"global_attn_every_n_layers": 3, "local_attention": 128}, {"kv": 2048, "window": 2048}),
        ({"num_key_value_heads": ..., "num_attention_groups": 4}, {"kv": 1024}),
        ({"layer_types": [*MIXED, "full_attention"], "num_nextn_predict_layers": 1, **DELTA}, {"kv": 2048}),
    ],
)
def test_layers_are_read_by_structure(changes: dict[str, Any], expected: dict[str, float]) -> None:
    spec = model_from_config(a_config(model_type="newcomer", **changes), "m")
    attention, recurrent = of_kind(spec.layers, Attention), of_kind(spec.layers, Recurrent)
    found = {
        "state": max((k.state_byte for k in recurrent), default=0),
        "kv": max(k.growing_width for k in attention),
        "window": max(k.window_width for k in attention),
    }
    assert {name: found[name] for name in expected} == expected
    assert spec.unread == ()


def test_layers_with_the_cache_of_an_earlier_one_hold_none() -> None:
    spec = model_from_config(a_config(model_type="newcomer", num_kv_shared_layers=8), "m")
    assert sum(k.n * k.growing_width for k in of_kind(spec.layers, Attention)) == 24 * 2048


def test_lists_hold_a_value_for_each_layer() -> None:
    lists = {
        "num_local_experts": [0, 8] * 16, "num_experts_per_tok": [0, 2] * 16, "moe_intermediate_size": [0, 512] * 16,
        "intermediate_size": [14336, 0] * 16,
    }  # fmt: skip
    spec = model_from_config(a_config(model_type="newcomer", **lists), "m")
    assert (spec.n_dense_layer, spec.n_expert, spec.n_expert_per_token, spec.intermediate_size) == (16, 8, 2, 14336)


def test_tables_of_n_grams_are_looked_up() -> None:
    grams = {"ple_layer_ids": [2], "ple_embed_dim": 2560, "ngram_vocab_size_base": 20_000_000}
    spec = model_from_config(a_config(model_type="newcomer", **grams), "m")
    assert of_kind(spec.layers, Lookup) == [Lookup(n=1, n_param_table=20_000_000 * 2560)]


def test_fields_that_no_layer_is_read_from_are_named() -> None:
    spec = model_from_config(
        a_config(model_type="newcomer", memory_bank_rank=64, rope_theta=1e6, memory_depth=0), "m"
    )
    assert spec.unread == ("memory_bank_rank",)
    assert model_from_config(a_config(memory_bank_rank=64), "m").unread == ()


@pytest.mark.parametrize("section", [True, False])
def test_a_class_fills_what_its_config_leaves_out(section: bool) -> None:
    text = {
        "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
        "sliding_window": 1024,
    }  # fmt: skip
    spec = model_from_config({"model_type": "gemma3", "text_config": text} if section else text, "m")
    assert (spec.n_head, spec.n_kv_head, spec.vocab_size, spec.n_sliding_layer) == (8, 4, 262208, 29)
    assert spec.assumed == ("head_dim", "num_attention_heads", "num_key_value_heads", "vocab_size")


@pytest.mark.parametrize(
    ("fields", "context"),
    [
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}, 131072),
        (
            {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}},
            131072,
        ),
        ({"rope_scaling": {"type": "yarn", "factor": 2.0}}, 81920),
        ({"rope_scaling": {"rope_type": "linear", "factor": 8.0}}, 40960),
        ({"rope_scaling": None}, 40960),
    ],
)
def test_scaled_positions_make_the_context_longer(fields: dict[str, Any], context: int) -> None:
    spec = model_from_config(a_config(max_position_embeddings=40960, **fields), "m")
    assert spec.max_context_token == context


def test_layers_determine_the_figures_of_a_stored_model() -> None:
    spec = model_from_config(CONFIGS["qwen3-next-80b-a3b"], "m")
    assert ModelSpec.parse(spec.model_dump(mode="json")) == spec
    assert ModelSpec.parse(spec.model_dump(mode="json") | {"n_param": 1, "n_linear_layer": 0}) == spec


def test_a_model_stored_before_layers_had_kinds_opens_as_uniform_layers() -> None:
    spec = model_from_config(CONFIGS["mistral-7b-v0.1"], "m")
    before = spec.model_dump(mode="json", exclude={"layers", "n_param_other", "stored_bits", "unread", "assumed"})
    again = ModelSpec.parse(before)
    assert (again.n_param, again.n_sliding_layer) == (spec.n_param, 32)
    assert [(k.kind, k.n) for k in again.layers] == [("attention", 32), ("mlp", 32)]


def test_the_value_width_has_the_weights_of_the_grouped_output_projection() -> None:
    config = CONFIGS["deepseek-v4-flash"]
    grouped = 64 * 512 * config["o_lora_rank"] + config["o_groups"] * config["o_lora_rank"] * 4096
    assert model_from_config(config, "m").v_head_dim * 64 * 4096 == grouped


@pytest.mark.parametrize(
    ("name", "changes", "problem"),
    [
        ("deepseek-v4-flash", {"compress_ratios": [4]}, "compress_ratios: must hold a ratio for each of 43 layers"),
        ("laguna-xs.2", {"num_attention_heads_per_layer": [48]}, "a number for each of 40 layers"),
        ("nemotron-super-49b", {"num_hidden_layers": 81}, "block_configs: must name all 81 layers, got 80"),
        (
            "nemotron-super-49b",
            {"num_hidden_layers": 1, "block_configs": [{"attention": {"replace_with_linear": True}, "ffn": {}}]},
            "block_configs.attention: is replaced with a linear map",
        ),
        (
            "nemotron-super-49b",
            {"num_hidden_layers": 1, "block_configs": [{"attention": {"no_op": True}, "ffn": {}}]},
            "leaves no layer of attention",
        ),
    ],
)
def test_a_wrong_layer_is_refused(name: str, changes: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        model_from_config(CONFIGS[name] | changes, "m")
