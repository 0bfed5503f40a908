import re

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import AmbiguousNameError, UnknownNameError
from roofcast.data.precision_names import format_engine, parse_precision, parse_weights
from roofcast.data.specs import AcceleratorSpec
from tests.every_row import for_every

CATALOG = load_catalog()
FORMS = frozenset({"sxm", "sxm2", "pcie", "nvl", "60c", "80c"})


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("4090", "nvidia-rtx-4090-24gb"),
        ("rtx4090", "nvidia-rtx-4090-24gb"),
        ("GeForce RTX 4090 24GB", "nvidia-rtx-4090-24gb"),
        ("RTX 3090", "nvidia-rtx-3090-24gb"),
        ("3090 Ti", "nvidia-rtx-3090-ti-24gb"),
        ("4080", "nvidia-rtx-4080-16gb"),
        ("7900 XTX", "amd-rx-7900-xtx-24gb"),
        ("M4 Max", "apple-m4-max-128gb"),
        ("m4", "apple-m4-32gb"),
        ("v6e", "google-tpu-v6e"),
        ("H100", "nvidia-h100-sxm-80gb"),
        ("MI300X", "amd-mi300x-192gb"),
        ("RTX Pro 6000", "nvidia-rtx-pro-6000-blackwell-server"),
        ("6000 pro blackwell", "nvidia-rtx-pro-6000-blackwell-server"),
        ("RTX PRO 6000 Max-Q", "nvidia-rtx-pro-6000-blackwell-maxq"),
        ("M3 Ultra 512", "apple-m3-ultra-512gb"),
        ("M4 Max 64", "apple-m4-max-64gb"),
        ("MacBook Pro M4 Pro 48GB", "apple-m4-pro-48gb"),
        ("Mac Studio M3 Ultra", "apple-m3-ultra-512gb"),
        ("H100 80GB PCIe", "nvidia-h100-pcie-80gb"),
        ("A100 40", "nvidia-a100-sxm-40gb"),
        ("A100-80G", "nvidia-a100-sxm-80gb"),
        ("5090 32", "nvidia-rtx-5090-32gb"),
        ("V100 32", "nvidia-v100-sxm2-32gb"),
        ("B200 192", "nvidia-b200-sxm-180gb"),
        ("HGX H100", "nvidia-h100-sxm-80gb"),
        ("spark", "nvidia-gb10-dgx-spark"),
        ("Ironwood", "google-tpu-v7x-ironwood"),
        ("AGX Orin 64GB", "nvidia-jetson-agx-orin-64gb"),
        ("trn2", "aws-trainium2"),
        ("p5.48xlarge", "nvidia-h100-sxm-80gb"),
        ("g6e", "nvidia-l40s-48gb"),
        ("a3-highgpu-8g", "nvidia-h100-sxm-80gb"),
        ("ND96isr H100 v5", "nvidia-h100-sxm-80gb"),
        ("Standard_ND96isr_MI300X_v5", "amd-mi300x-192gb"),
        ("BM.GPU.H200.8", "nvidia-h200-sxm-141gb"),
        ("a4x-highgpu-4g", "nvidia-gb200"),
        ("ct6e-standard-4t", "google-tpu-v6e"),
        ("2x RTX 3090", "nvidia-rtx-3090-24gb"),
        ("H100 x8", "nvidia-h100-sxm-80gb"),
        ("M5 Ultra", "apple-m5-ultra-512gb"),
    ],
)
def test_an_accelerator_is_meant_by_its_words(name: str, id_: str) -> None:
    assert CATALOG.accelerator(name).id == id_
    assert f"is taken as {id_}" in CATALOG.remark("accelerator", name)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Mac Studio", "may be apple-m5-ultra-512gb, apple-m5-max-128gb, apple-m3-ultra-512gb"),
        ("Mac Studio 96GB", "may be apple-m5-ultra-64c-96gb"),
        ("a3", "may be nvidia-h100-sxm-80gb or nvidia-h200-sxm-141gb; name one"),
        ("Vera Rubin NVL144", "is announced, .* nearest that is known is nvidia-gb300"),
        ("AMD Instinct MI450", "is announced; .* nearest that is known is amd-mi355x-288gb"),
        ("MI430X", "MI430X .* is announced"),
        ("H100 64GB", "no source states its bandwidth; the nearest that is known is nvidia-h100-sxm-80gb"),
    ],
)
def test_hardware_that_is_no_accelerator_of_the_catalogue_is_told(name: str, problem: str) -> None:
    with pytest.raises(UnknownNameError, match=problem):
        CATALOG.accelerator(name)


def test_what_stands_in_the_table_of_hardware_is_known() -> None:
    ids = {*CATALOG.accelerators, *(re.sub(r"(-[0-9]+c)?-[0-9]+gb$", "", id_) for id_ in CATALOG.accelerators)}
    assert all(set(row.ids) <= ids for row in CATALOG.hardware_names)
    assert "of which one has 8" in CATALOG.remark("accelerator", "p5.48xlarge")
    assert "n_accelerator 2" in CATALOG.remark("accelerator", "2x RTX 3090")


@pytest.mark.parametrize(
    ("name", "id_", "precision"),
    [
        ("llama 3.3 70b", "meta-llama/Llama-3.3-70B-Instruct", "bf16"),
        ("qwen 3 32b", "Qwen/Qwen3-32B", "bf16"),
        ("llama3.1:8b", "meta-llama/Llama-3.1-8B", "bf16"),
        ("gemma3:27b", "google/gemma-3-27b-it", "bf16"),
        ("qwen2.5:72b", "Qwen/Qwen2.5-72B", "bf16"),
        ("gpt-oss", "openai/gpt-oss-120b", "fp4"),
        ("Qwen/Qwen3-32B-AWQ", "Qwen/Qwen3-32B", "int4"),
        ("Llama-3.3-70B-Instruct-FP8-dynamic", "meta-llama/Llama-3.3-70B-Instruct", "fp8"),
        ("unsloth/Llama-3.3-70B-Instruct-GGUF", "meta-llama/Llama-3.3-70B-Instruct", "int4"),
        ("bartowski/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "meta-llama/Llama-3.1-8B", "int4"),
        ("llama 3.1 8b q8", "meta-llama/Llama-3.1-8B", "int8"),
        ("bartowski/Qwen3-32B-GGUF:Q5_K_M", "Qwen/Qwen3-32B", "int4"),
        ("mlx-community/Qwen3-32B-6bit", "Qwen/Qwen3-32B", "int4"),
        ("turboderp/Llama-3.3-70B-Instruct-exl3-3.0bpw", "meta-llama/Llama-3.3-70B-Instruct", "int4"),
    ],
)
def test_a_model_is_meant_by_its_words(name: str, id_: str, precision: str) -> None:
    spec = CATALOG.model(name)
    assert (spec.id, spec.weight_precision) == (id_, precision)
    assert f"is taken as {id_}" in CATALOG.remark("model", name)


@for_every([spec for spec in CATALOG.accelerators.values() if spec.id.endswith("gb")])
def test_each_part_and_its_memory_size_mean_one_accelerator(spec: AcceleratorSpec) -> None:
    *part, memory = [word for word in spec.id.split("-")[1:] if word not in FORMS]
    for size in (memory, memory.removesuffix("gb")):
        meaning = CATALOG.accelerator(" ".join([*part, size]))
        assert meaning.id.split("-")[:2] == spec.id.split("-")[:2]
        assert meaning.id.endswith(memory)


@pytest.mark.parametrize("name", ["qwen3-32b", "Qwen/Qwen3-32B", "meta-llama/llama-3.1-8b"])
def test_a_name_that_is_spelled_as_the_id_has_no_remark(name: str) -> None:
    assert CATALOG.remark("model", name) == ""


@pytest.mark.parametrize(
    ("field", "name", "candidate"),
    [
        ("accelerator", "a100", "nvidia-a100-pcie-80gb"),
        ("accelerator", "V100", "nvidia-v100-sxm2-32gb"),
        ("model", "mixtral", "mistralai/Mixtral-8x7B-v0.1"),
        ("model", "qwen3", "Qwen/Qwen3-32B"),
    ],
)
def test_an_ambiguous_name_is_refused_with_what_it_may_mean(field: str, name: str, candidate: str) -> None:
    with pytest.raises(AmbiguousNameError, match=f"'{name}' may be .*{candidate}.*; name one") as caught:
        getattr(CATALOG, field)(name)
    assert candidate in caught.value.near


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("accelerator", "AMD 4090"),
        ("accelerator", "80gb"),
        ("accelerator", "rtx"),
        ("accelerator", "4090 Ti"),
        ("accelerator", "\N{CYRILLIC SMALL LETTER A}100"),
        ("accelerator", "h" * 10_000),
        ("model", "acme/llama-3.3-70b"),
        ("model", "llama-3.1-8b-mytune"),
        ("model", "qwen 33b"),
        ("model", "instruct"),
        ("model", "q4_k_m"),
        ("model", "\N{CYRILLIC SMALL LETTER O}penai/gpt-oss-20b"),
    ],
)
def test_a_name_that_means_none_stays_unknown(field: str, name: str) -> None:
    with pytest.raises(UnknownNameError, match="is known"):
        getattr(CATALOG, field)(name)


def test_every_id_and_alias_means_itself() -> None:
    for id_ in CATALOG.models:
        assert CATALOG.model(id_).id == id_
    for alias, id_ in CATALOG.model_aliases.items():
        assert CATALOG.model(alias).id == id_
    for alias, id_ in CATALOG.accelerator_aliases.items():
        assert CATALOG.accelerator(alias).id == id_


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("Q4_K_M", "int4"), ("q4", "int4"), ("Q8_0", "int8"), ("UD-Q4_K_XL", "int4"),
        ("q4_0", "int4"), ("q4_1", "int4"), ("IQ4_NL", "int4"),
        ("gguf", "int4"), ("AWQ", "int4"), ("GPTQ", "int4"), ("GPTQ-Int8", "int8"), ("bnb-4bit", "int4"),
        ("nf4", "int4"), ("4-bit", "int4"), ("8 bit", "int8"), ("w4a16", "int4"), ("W8A8", "int8"),
        ("bfloat16", "bf16"), ("half", "fp16"), ("FP16", "fp16"), ("float8_e4m3fn", "fp8"), ("fp8_e4m3", "fp8"),
        ("W4A8_MXFP4_FP8", "fp4"), ("W4A16_AWQ", "int4"),
        ("FP8_BLOCK_SCALES", "fp8"), ("NVFP4", "fp4"), ("mxfp4", "fp4"), ("BF16", "bf16"),
        ("Q6_K", ""), ("MLX 6bit", ""), ("brain", ""), ("", ""), ("9" * 999, ""),
    ],
)  # fmt: skip
def test_precisions_by_the_names_of_formats_and_quantisations(name: str, precision: str) -> None:
    assert parse_precision(name) == precision


@pytest.mark.parametrize(
    ("name", "meaning", "engine"),
    [
        ("Q2_K", "int4 of 2.92 bits a weight", "llama.cpp"),
        ("Q3_K_M", "int4 of 3.82 bits a weight", "llama.cpp"),
        ("UD-Q5_K_XL", "int4 of 5.64 bits a weight", "llama.cpp"),
        ("Q6_K", "int4 of 6.56 bits a weight", "llama.cpp"),
        ("IQ2_XXS", "int4 of 2.16 bits a weight", "llama.cpp"),
        ("Q4_K_M", "int4", "llama.cpp"),
        ("MLX 6bit", "int4 of 6.5 bits a weight", "mlx-lm"),
        ("3-bit AWQ", "int4 of 3.25 bits a weight", ""),
        ("EXL3 3.0bpw", "int4 of 3 bits a weight", "exllama-v3"),
        ("MXFP6", "fp8 of 6.25 bits a weight", ""),
        ("fp6", "fp8 of 6 bits a weight", ""),
    ],
)
def test_formats_between_four_and_eight_bits_have_their_bits_and_engine(name: str, meaning: str, engine: str) -> None:
    assert (str(parse_weights(name)), format_engine(name)) == (meaning, engine)
