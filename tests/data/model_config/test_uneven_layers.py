"""Layers of several kinds: compressed caches, further heads, blocks without attention."""

import pytest

from roofcast.data.errors import InputError
from roofcast.data.model_config.huggingface import model_from_config
from tests.data.model_config.model_configs import PUBLISHED


def test_layers_whose_indexer_selects_entries_are_sparse_and_the_others_slide() -> None:
    spec = model_from_config(PUBLISHED["deepseek-v4-flash"][0], "m")

    assert (spec.n_sparse_layer, spec.sparse_top_k, spec.kv_compression) == (21, 512 + 128, 4)
    assert (spec.n_sliding_layer, spec.sliding_window) == (22, 128)
    assert (spec.kv_lora_rank + spec.qk_rope_head_dim, spec.weight_precision) == (512, "fp4")


def test_the_value_width_has_the_weights_of_the_grouped_output_projection() -> None:
    config = PUBLISHED["deepseek-v4-flash"][0]

    grouped = 64 * 512 * config["o_lora_rank"] + config["o_groups"] * config["o_lora_rank"] * 4096

    assert model_from_config(config, "m").v_head_dim * 64 * 4096 == grouped


def test_heads_of_sliding_layers_are_not_those_of_the_spec() -> None:
    spec = model_from_config(PUBLISHED["mimo-v2-flash"][0], "m")

    assert (spec.n_kv_head, spec.head_dim, spec.v_head_dim) == (4, 192, 128)
    assert (spec.n_sliding_layer, spec.sliding_window, spec.n_dense_layer) == (39, 128, 1)


def test_blocks_without_attention_have_no_growing_cache() -> None:
    spec = model_from_config(PUBLISHED["nemotron-super-49b"][0], "m")

    assert (spec.n_layer, spec.n_linear_layer, spec.n_kv_head) == (80, 31, 8)


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
        model_from_config({**PUBLISHED[name][0], **changes}, "m")
