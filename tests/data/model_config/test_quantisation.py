"""Bits of weights by role, as configs of every method state them."""

from typing import Any

import pytest

from roofcast.data.model_config.huggingface import model_from_config
from roofcast.data.specs import StoredBits
from tests.data.model_config.model_configs import PUBLISHED, a_config

FLOAT_8 = {"num_bits": 8, "type": "float"}
NVFP4 = {"num_bits": 4, "type": "float", "group_size": 16}
ATTENTION = {"targets": ["re:.*self_attn.*"], "weights": FLOAT_8}
MLP = {"targets": ["re:.*mlp.*"], "weights": NVFP4}


def tensors(*groups: dict[str, Any], ignore: tuple[str, ...] = ("lm_head",), **more: object) -> dict[str, Any]:
    named = {f"group_{i}": group for i, group in enumerate(groups)}
    return {"quant_method": "compressed-tensors", "ignore": list(ignore), "config_groups": named, **more}


@pytest.mark.parametrize(
    ("quantisation", "expected"),
    [
        (tensors(ATTENTION, MLP), StoredBits(attention=8, mlp=4.5)),
        (tensors(MLP, ATTENTION), StoredBits(attention=8, mlp=4.5)),
        (tensors({"targets": ["Linear"], "weights": FLOAT_8}, MLP), StoredBits(attention=8, mlp=4.5, module=8)),
        (
            tensors({"targets": ["Linear"], "weights": FLOAT_8}, ignore=("lm_head", "re:.*self_attn.*")),
            StoredBits(mlp=8, module=8),
        ),
        ({"quant_method": "fp8", "modules_to_not_convert": ["lm_head"]}, StoredBits(attention=8, mlp=8)),
        ({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0", "model.layers.1"]},
         StoredBits(attention=8.5, mlp=8.5)),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, StoredBits(attention=4.15625, mlp=4.15625)),
        ({"quant_method": "gptq", "bits": 3, "group_size": 128}, StoredBits(attention=3.125, mlp=3.125)),
        ({"quant_method": "gptq", "bits": 2, "group_size": 64, "lm_head": True},
         StoredBits(attention=2.25, mlp=2.25, head=2.25)),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, StoredBits(attention=4.5, mlp=4.5)),
        ({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}},
         StoredBits(attention=4.5, mlp=4.5)),
        ({"quant_method": "torchao", "quant_type": "int4wo-64"}, StoredBits(attention=4.5, mlp=4.5)),
        ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Float8WeightOnlyConfig"}}},
         StoredBits(attention=8, mlp=8)),
        ({"quant_method": "exl3", "bits": 3.5, "head_bits": 6}, StoredBits(attention=3.5, mlp=3.5, head=6)),
        ({"quant_method": "quanto", "weights": "int8"}, StoredBits(attention=8, mlp=8)),
        ({"quant_method": "aqlm", "num_codebooks": 1, "nbits_per_codebook": 16, "in_group_size": 8},
         StoredBits(attention=2, mlp=2)),
        ({"quant_algo": "NVFP4", "exclude_modules": ["lm_head", "model.layers.*.self_attn*"]}, StoredBits(mlp=4.5)),
        (
            tensors({"targets": ["re:.*qkv_proj", "re:.*o_proj"], "weights": FLOAT_8}, MLP),
            StoredBits(attention=8, mlp=4.5),
        ),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128,
          "dynamic": {"+:.*self_attn.*": {"bits": 8}, "-:.*mlp.*": {}}}, StoredBits(attention=8.125)),
        ({"quant_method": "auto-round", "bits": 4, "group_size": 32, "data_type": "mx_fp",
          "extra_config": {"self_attn": {"bits": 16}}}, StoredBits(mlp=4.25)),
        ({"quant_method": "hqq", "quant_config": {
            "self_attn": {"weight_quant_params": {"nbits": 8, "group_size": 64}},
            "mlp.gate_proj": {"weight_quant_params": {"nbits": 4, "group_size": 64}}}},
         StoredBits(attention=8.5, mlp=(2 * 4.5 + 8.5) / 3)),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "mxfp4"}},
          "layer_quant_config": {"*self_attn*": {"weight": {"dtype": "fp8_e4m3"}}}},
         StoredBits(attention=8, mlp=4.25)),
        ({"quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head"]}},
         StoredBits(attention=4.5, mlp=4.5)),
        ({"load_in_4bit": True}, StoredBits(attention=4.5, mlp=4.5)),
        ({"group_size": 64, "bits": 4, "mlp.down_proj": {"bits": 8}},
         StoredBits(attention=4.5, mlp=(2 * 4.5 + 8.5) / 3, embedding=4.5, head=4.5)),
        ({"qformat_weight": "fp8_e4m3"}, StoredBits(attention=8, mlp=8)),
        ({"group_size": 64, "bits": 4}, StoredBits(attention=4.5, mlp=4.5, embedding=4.5, head=4.5)),
    ],
)  # fmt: skip
def test_each_role_has_the_bits_that_its_rule_states(quantisation: dict[str, Any], expected: StoredBits) -> None:
    stored = model_from_config(a_config(quantization_config=quantisation), "m").stored_bits
    assert stored is not None
    roles = ("attention", "mlp", "head", "embedding")
    assert [getattr(stored, role) for role in roles] == pytest.approx([getattr(expected, role) for role in roles])


def test_mlx_states_its_bits_in_a_block_of_its_own() -> None:
    block = {"group_size": 64, "bits": 4, "model.embed_tokens": {"bits": 6}, "lm_head": False}
    stored = model_from_config(a_config(quantization=block), "m").stored_bits
    assert stored == StoredBits(4.5, 4.5, embedding=6.5, head=16.0, module=4.5)


@pytest.mark.parametrize(
    ("more", "precision"),
    [
        ({"kv_cache_scheme": FLOAT_8}, "fp8"),
        ({"kv_cache_quant_algo": "FP8"}, "fp8"),
        ({"kv_cache_quant_algo": "NVFP4"}, "fp4"),
        ({"kv_cache_quant_algo": None}, None),
        ({}, None),
    ],
)
def test_a_checkpoint_states_the_precision_of_its_cache(more: dict[str, Any], precision: str | None) -> None:
    quantisation = tensors({"targets": ["Linear"], "weights": FLOAT_8}, **more)
    assert model_from_config(a_config(quantization_config=quantisation), "m").kv_precision == precision


@pytest.mark.parametrize(
    ("quantisation", "expected"),
    [
        (tensors(
            {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "group_size": 32}},
            ignore=("lm_head", "re:.*self_attn.*", r"re:.*mlp\.(gate|up|gate_up|down)_proj.*"),
        ), 4.5),
        ({"bits": 16, "mode": "affine", "group_size": 64, "lm_head": False, "embed_tokens": False, "self_attn": False,
         "model.layers.0.mlp.switch_mlp.gate_proj": {"bits": 4, "group_size": 32, "mode": "mxfp4"}},
         (2 * 4.25 + 16.5) / 3),
    ],
)  # fmt: skip
def test_experts_have_bits_of_their_own(quantisation: dict[str, Any], expected: float) -> None:
    fields = {"num_local_experts": 8, "num_experts_per_tok": 2, "num_hidden_layers": 1}
    stored = model_from_config(a_config(**fields, quantization_config=quantisation), "m").stored_bits
    assert stored is not None
    assert stored.attention == 16
    assert stored.expert == pytest.approx(expected)


def test_mxfp4_is_that_of_experts() -> None:
    stored = model_from_config(PUBLISHED["gpt-oss-20b"][0], "m").stored_bits
    assert stored == StoredBits(expert=4.25)
