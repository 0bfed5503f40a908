"""Configs of published models have the published weights; invalid configs are refused with their field."""

import json
from pathlib import Path
from typing import Any

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.model_config.huggingface import (
    MAX_CONFIG_BYTE,
    load_model_config,
    model_from_config,
    parse_config,
    with_known_lineage,
)
from roofcast.data.specs import ModelSpec
from tests.data.model_config.model_configs import CONFIGS, FIGURES, LLAMA_3_1_8B, PUBLISHED, Config, a_config
from tests.every_row import for_every


@for_every(PUBLISHED)
def test_the_weights_of_a_config_are_those_published(name: str) -> None:
    config, n_published = PUBLISHED[name]

    spec = model_from_config(config, name)

    assert spec.n_param == pytest.approx(n_published, rel=2e-4)
    assert spec.n_param_active <= spec.n_param
    assert spec.id == spec.lineage == spec.fold_group == name


@pytest.mark.parametrize("name", FIGURES)
def test_fields_depend_on_the_model_family(name: str) -> None:
    spec = model_from_config(CONFIGS[name], name)
    assert {field: getattr(spec, field) for field in FIGURES[name]} == FIGURES[name]


def _same_architecture(left: ModelSpec, right: ModelSpec) -> bool:
    own = {"id", "lineage", "fold_group", "family", "model_type", "source", "note", "released", "weight_precision"}
    counted = {"n_param", "n_param_active", "max_context_token", "n_dense_layer", "layers", "n_param_other"}
    counted |= {"stored_bits", "kv_precision", "weight_format", "assumed"}
    counted |= {"n_param_published", "n_param_published_source", "n_param_difference"}
    return left.model_dump(exclude=own | counted) == right.model_dump(exclude=own | counted)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("llama-3.1-8b", "meta-llama/Llama-3.1-8B"),
        ("qwen2.5-7b", "Qwen/Qwen2.5-7B-Instruct"),
        ("mistral-7b-v0.1", "mistralai/Mistral-7B-v0.1"),
        ("mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1"),
        ("deepseek-v3", "deepseek-ai/DeepSeek-V3"),
        ("gpt-oss-20b", "openai/gpt-oss-20b"),
        ("gemma-3-27b", "google/gemma-3-27b-it"),
        ("llama-4-maverick", "meta-llama/Llama-4-Maverick-17B-128E-Instruct"),
        ("nemotron-3-nano-30b", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"),
        ("kimi-linear-48b-a3b", "moonshotai/Kimi-Linear-48B-A3B-Instruct"),
        ("lfm2.5-2.6b", "LiquidAI/LFM2.5-2.6B"),
        ("flan-t5-xxl", "google/flan-t5-xxl"),
        ("starcoder", "bigcode/starcoder"),
        ("mpt-7b", "ibm/mpt-7b-instruct2"),
    ],
)
def test_a_config_agrees_with_the_catalogue(name: str, known: str) -> None:
    assert _same_architecture(model_from_config(PUBLISHED[name][0], name), load_catalog().model(known))


@pytest.mark.parametrize(
    ("config", "lineage"),
    [
        (LLAMA_3_1_8B, "llama-3-8b"),
        (PUBLISHED["mistral-7b-v0.1"][0], "mistral-7b"),  # has the vocabulary of a relative
        (a_config(num_hidden_layers=33), "copy"),
    ],
)
def test_a_model_has_the_lineage_of_the_catalogue_model_of_its_shape_or_its_own(config: Config, lineage: str) -> None:
    spec = model_from_config(config, "copy")
    copy = with_known_lineage(spec, load_catalog())
    assert (copy.id, copy.lineage) == ("copy", lineage)
    assert (copy is spec) == (lineage == "copy")


def compressed(**weights: object) -> dict[str, Any]:
    return {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": weights}}}


MIXED = {"a": {"quant_algo": "FP8"}, "b": {"quant_algo": "W4A16_NVFP4"}}


QUANTISED: list[tuple[dict[str, Any], str]] = [
    ({"quant_method": "fp8"}, "fp8"),
    ({"quant_method": "gptq", "bits": 8}, "int8"),
    ({"quant_method": "awq", "bits": 4}, "int4"),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4"),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
    ({"quant_method": "compressed-tensors", "format": "float-quantized"}, "fp8"),
    ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}, "fp4"),
    (compressed(num_bits=4, type="int"), "int4"),
    (compressed(num_bits=8, type="float"), "fp8"),
    ({"quant_method": "mxfp4"}, "fp4"),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "fp4"),
    ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": MIXED}, "fp4"),
    ({"quant_algo": "FP8"}, "fp8"),
    ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}}, "fp8"),
]


@pytest.mark.parametrize(
    ("fields", "precision"),
    [
        ({"torch_dtype": "float16"}, "fp16"),
        ({"torch_dtype": "torch.bfloat16"}, "bf16"),
        ({"torch_dtype": "float32"}, "fp32"),
        ({"torch_dtype": None}, "bf16"),
        *(({"quantization_config": quantisation}, precision) for quantisation, precision in QUANTISED),
    ],
)
def test_data_type_and_quantisation_determine_the_precision(fields: dict[str, Any], precision: str) -> None:
    assert model_from_config(a_config(**fields), "m").weight_precision == precision


WRONG: list[tuple[Config, str]] = [
    (a_config(hidden_size=...), "hidden_size"),
    (a_config(model_type="newcomer", vocab_size=...), "vocab_size"),
    (a_config(num_hidden_layers=...), "num_hidden_layers"),
    (a_config(model_type="newcomer", num_attention_heads=...), "num_attention_heads"),
    (a_config(model_type="newcomer", intermediate_size=...), "intermediate_size"),
    (a_config(hidden_size="4096"), "hidden_size"),
    (a_config(hidden_size=True), "hidden_size"),
    (a_config(hidden_size=4096.0), "hidden_size"),
    (a_config(hidden_size=[4096]), "hidden_size"),
    (a_config(hidden_size=-4096), "hidden_size"),
    (a_config(hidden_size=0), "hidden_size"),
    (a_config(hidden_size=10**9), "hidden_size"),
    (a_config(hidden_size=10**400), "hidden_size"),
    (a_config(hidden_size=4097), "hidden_size"),
    *((a_config(hidden_size=float(value)), "hidden_size") for value in ("nan", "inf", "-inf")),
    (CONFIGS["glm-5"] | {"index_topk": -1}, "index_topk"),
    (CONFIGS["gemma-3n-e4b"] | {"intermediate_size": []}, "intermediate_size"),
    (CONFIGS["gemma-3n-e4b"] | {"intermediate_size": [-1] * 35}, "intermediate_size"),
    (CONFIGS["gemma-4-e2b"] | {"num_kv_shared_layers": 36}, "num_kv_shared_layers"),
    (CONFIGS["gemma-4-e2b"] | {"vocab_size_per_layer_input": "many"}, "vocab_size_per_layer_input"),
    (CONFIGS["gemma-4-e2b"] | {"hidden_size_per_layer_input": -1}, "hidden_size_per_layer_input"),
    (a_config(num_hidden_layers=10**6), "num_hidden_layers"),
    (a_config(num_key_value_heads=64), "num_key_value_heads"),
    (a_config(tie_word_embeddings="yes"), "tie_word_embeddings"),
    (a_config(model_type=7), "model_type"),
    (a_config(layer_types=["full_attention"]), "layer_types"),
    (a_config(layer_types=["mamba"] * 32), "linear_num_value_heads"),
    (a_config(layer_types="full"), "layer_types"),
    (a_config(torch_dtype="complex64"), "torch_dtype"),
    (a_config(quantization_config="fp8"), "quantization_config"),
    (a_config(quantization_config={"quant_method": "mystery"}), "quantization_config.quant_method"),
    (a_config(quantization_config={"quant_method": "gptq", "bits": 9}), "quantization_config.bits"),
    (a_config(num_local_experts=8), "num_experts_per_tok"),
    (a_config(num_local_experts=8, num_experts_per_tok=9), "num_experts_per_tok"),
    (a_config(kv_lora_rank=512), "qk_nope_head_dim"),
    (a_config(is_encoder_decoder=True), "is_encoder_decoder"),
    (a_config(text_config=[1]), "text_config"),
    (a_config(model_type="nemotron_h", hybrid_override_pattern="MX"), "hybrid_override_pattern"),
    (a_config(model_type="granitemoehybrid", layer_types=["mamba"]), "layer_types"),
    (a_config(model_type="granitemoehybrid", layer_types=["mlp"] * 32), "layer_types"),
    (a_config(model_type="newcomer", attn_layer_indices=[1]), "linear_num_value_heads"),
    (a_config(model_type="newcomer", mamba_n_heads=24), "mamba_d_state"),
    (a_config(layer_types=["sliding_attention"] * 32), "sliding_window"),
    (a_config(layer_types=["lattice"] * 32), "layer_types"),
    (a_config(model_type="jamba", attn_layer_period=8, attn_layer_offset=8), "attn_layer_offset"),
    (a_config(linear_attn_config={"kda_layers": [1]}), "linear_attn_config"),
    (a_config(model_type="minimax", attn_type_list=[0, 1]), "attn_type_list"),
    (a_config(model_type="minimax", attn_type_list=[2] * 32), "attn_type_list"),
    ({**a_config(), "_class_name": "UNet2DConditionModel"}, "_class_name"),
    ({}, "hidden_size"),
]


@pytest.mark.parametrize(("config", "field"), WRONG)
def test_an_invalid_config_is_refused_with_its_field(config: Config, field: str) -> None:
    with pytest.raises(InputError) as refused:
        model_from_config(config, "m")

    assert refused.value.field == field
    assert len(str(refused.value)) < 400


NO_OBJECTS: list[Any] = [[], "text", 7, None]
HUGE = a_config(hidden_size=200_000, head_dim=128, intermediate_size=2_000_000, num_hidden_layers=2_000)


@pytest.mark.parametrize(
    ("config", "name", "problem"),
    [
        *(
            (a_config(model_type=kind), "m", "give a decoder-only or T5-like model")
            for kind in ("vit", "whisper", "clip", "bert", "wav2vec2", "deci")
        ),
        *((config, "m", "must be an object") for config in NO_OBJECTS),
        *((LLAMA_3_1_8B, name, "id") for name in ("", "x" * 201)),
        (HUGE, "m", "weights"),
    ],
)
def test_other_models_names_and_values_are_refused(config: Any, name: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        model_from_config(config, name)


def test_an_indexer_that_layers_share_is_counted_once() -> None:
    config, _ = PUBLISHED["glm-5"]
    shared = {**config, "indexer_types": ["full"] * 21 + ["shared"] * 57}

    spec, other = (model_from_config(one, "m") for one in (config, shared))

    assert (spec.n_sparse_layer, other.n_sparse_layer) == (78, 78)
    assert spec.n_param - other.n_param == 57 * (2048 * 32 * 128 + 6144 * (128 + 32) + 2 * 128)


def test_a_list_of_layer_types_determines_the_expert_layers() -> None:
    config = {**PUBLISHED["mixtral-8x7b"][0], "moe_layer_freq": [0] * 12 + [1] * 20, "dense_intermediate_size": 512}

    spec = model_from_config(config, "m")

    assert (spec.n_dense_layer, spec.intermediate_size) == (12, 512)


def test_gates_of_full_rank_add_weights() -> None:
    config, _ = PUBLISHED["kimi-linear-48b-a3b"]
    gated = {
        **config,
        "mla_use_output_gate": True,
        "linear_attn_config": {**config["linear_attn_config"], "use_full_rank_gate": True},
    }

    difference = model_from_config(gated, "m").n_param - model_from_config(config, "m").n_param

    low_rank = 2304 * 128 + 128 * 4096
    assert difference == 7 * 2304 * 4096 + 20 * (2304 * 4096 - low_rank)


def test_an_unknown_model_type_is_read_by_the_usual_field_names() -> None:
    spec = model_from_config(a_config(model_type="newcomer"), "m")

    assert spec.n_param == 8_030_261_248


def test_a_folder_is_read_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "my-llama"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA_3_1_8B), encoding="utf-8")

    assert load_model_config(folder).id == "my-llama"
    assert load_model_config(folder / "config.json", "other").id == "other"


@pytest.mark.parametrize(
    ("field_value", "name"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("my-8b", "my-8b"),
        ("/data/checkpoints/my-8b/", "my-8b"),
        ("C:\\models\\my-8b", "my-8b"),
        ("", "folder"),
        ("./", "folder"),
        (None, "folder"),
        (3, "folder"),
    ],
)
def test_a_config_names_its_model(tmp_path: Path, field_value: object, name: str) -> None:
    file = tmp_path / "folder" / "config.json"
    file.parent.mkdir()
    file.write_text(json.dumps({**LLAMA_3_1_8B, "_name_or_path": field_value}), encoding="utf-8")

    assert load_model_config(file).id == load_model_config(file.parent).id == name


def test_infinities_in_unused_fields_are_accepted_in_files_alone(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(a_config(time_step_limit=[0.0, float("inf")])), encoding="utf-8")

    assert load_model_config(tmp_path).n_param == 8_030_261_248
    with pytest.raises(SchemaError, match="Infinity is no JSON number"):
        parse_config((tmp_path / "config.json").read_bytes())


def test_the_precision_is_read_from_the_quantisation_file_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_3_1_8B), encoding="utf-8")
    (tmp_path / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "NVFP4"}}', encoding="utf-8")

    assert load_model_config(tmp_path).weight_precision == "fp4"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read 'config\.json'|cannot read 'absent'"):
        load_model_config(tmp_path / "absent")


BROKEN = {
    b'{\n"hidden_size": 4096,\n}': "line 3",
    b'{"hidden_size": NaN}': "NaN is no JSON number",
    b'{"hidden_size": -Infinity}': "-Infinity is no JSON number",
    b'{"hidden_size": 1, "hidden_size": 2}': "hidden_size: is given twice",
    b"[" * 200_000: "nested too deeply",
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000: "nested too deeply",
    b'{"hidden_size": ' + b"9" * 5_000 + b"}": "too many digits",
    b"[1]": "must be an object",
    b"\xff\xfe{}": "UTF-8",
    b" " * (MAX_CONFIG_BYTE + 1): "at most 5000000 bytes",
    b"": "line 1",
}


@pytest.mark.parametrize(("body", "problem"), BROKEN.items(), ids=range(len(BROKEN)))
def test_a_broken_file_is_refused(body: bytes, problem: str) -> None:
    with pytest.raises(SchemaError) as refused:
        parse_config(body)

    assert problem in str(refused.value)
