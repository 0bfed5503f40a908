import pytest

from roofcast.data.catalog import load_catalog
from roofcast.features.columns import ENGINES
from roofcast.features.validity.engine_choice import (
    ANY_ENGINE,
    default_precision,
    is_engine,
    needs_copy,
    searched_pairs,
    unknown_engine_error,
)
from roofcast.features.validity.engine_support import Stack, canonical_engine

CATALOG = load_catalog()
PARTS = CATALOG.accelerators
H100, MI300X, GAUDI = (PARTS[name] for name in ("nvidia-h100-sxm-80gb", "amd-mi300x-192gb", "intel-gaudi3-128gb"))


@pytest.mark.parametrize("engine", ["vlm", "tensor", "homemade"])
def test_an_engine_that_nobody_knows_is_refused_with_near_misses(engine: str) -> None:
    assert not is_engine(engine)
    assert is_engine(engine, ["homemade", "vlm", "tensor"])
    assert ("vllm" in unknown_engine_error(engine).near) == (engine == "vlm")


def test_every_engine_of_the_learner_is_known() -> None:
    assert all(map(is_engine, [*ENGINES, "vLLM", "SGLang 0.5", "ik_llama.cpp"]))


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("sgl", "sglang"), ("TensorRT", "trtllm"), ("trt", "trtllm"), ("tensorrt_llm 1.2", "trtllm"),
        ("llama_cpp", "llama.cpp"), ("Ollama 0.13", "ollama"), ("LM Studio", "llama.cpp"), ("MLX", "mlx-lm"),
        ("mlx_lm", "mlx-lm"), ("ExLlamaV3", "exllama-v3"), ("TabbyAPI", "exllama-v3"), ("exl2", "exllama-v2"),
        ("HuggingFace TGI", "tgi"),
        ("vllm_ascend", "vllm"), ("vllm-mlx", "vllm-mlx"),
    ],
)  # fmt: skip
def test_spellings_that_people_type_mean_an_engine_of_the_table(name: str, engine: str) -> None:
    assert canonical_engine(name) == engine
    assert is_engine(name)


@pytest.mark.parametrize(
    ("part", "model", "expected"),
    [
        ("nvidia-h100-sxm-80gb", "llama-3.1-8b", "vllm/bf16 sglang/bf16 trtllm/bf16"),
        ("amd-mi300x-192gb", "gpt-oss-20b", "vllm/fp4"),
        ("nvidia-t4-16gb", "gpt-oss-20b", "llama.cpp/fp4"),
        ("nvidia-t4-16gb", "gemma-2-9b", "vllm/fp32"),
        ("nvidia-a100-sxm-80gb", "MiniMax-M2", "vllm/fp8"),
        ("nvidia-b200-sxm-180gb", "Kimi-K2.5", "vllm/int4 sglang/int4"),
        ("amd-strix-halo-128gb", "llama-3.1-8b", "vllm/bf16 llama.cpp/bf16"),
        ("apple-m4-max-128gb", "llama-3.1-8b", "llama.cpp/bf16 mlx-lm/bf16"),
        ("google-tpu-v4", "llama-3.1-8b", "vllm/bf16 sglang/bf16"),
        ("aws-inferentia2", "llama-3.1-8b", ""),
    ],
)  # fmt: skip
def test_a_search_tries_what_runs(part: str, model: str, expected: str) -> None:
    pairs = searched_pairs(CATALOG.model(model), PARTS[part])
    assert {f"{engine}/{precision}" for precision, engine in pairs} == {*expected.split()}


@pytest.mark.parametrize(("memory_gb", "precision"), [(200, "bf16"), (100, "int8"), (48, "int4"), (16, "int4")])
def test_an_engine_that_quantises_takes_the_precision_that_fits(memory_gb: float, precision: str) -> None:
    part, model = PARTS["nvidia-rtx-4090-24gb"], CATALOG.model("llama-3.3-70b")
    pairs = searched_pairs(model, part, memory_byte=memory_gb * 1e9)
    assert {name for name, engine in pairs if engine == "llama.cpp"} == {precision}
    assert {name for name, engine in pairs if engine == "vllm"} == {"bf16"}


def test_a_named_engine_is_tried_where_it_is_unknown_and_not_where_it_does_not_run() -> None:
    llama = CATALOG.model("llama-3.1-8b")
    assert searched_pairs(llama, PARTS["apple-m4-max-128gb"], ["vllm"]) == [("bf16", "vllm")]
    assert searched_pairs(llama, PARTS["nvidia-v100-sxm2-32gb"], ["vllm"]) == []
    assert searched_pairs(llama, MI300X, precisions=["fp8"]) == [("fp8", "sglang"), ("fp8", "vllm")]


def test_an_accelerator_that_the_table_does_not_know_has_any_engine() -> None:
    own = H100.model_copy(update={"vendor": "Ours", "id": "ours-x1"})
    assert searched_pairs(CATALOG.model("llama-3.1-8b"), own) == [("bf16", ANY_ENGINE)]
    assert default_precision(Stack("vllm", own, model=CATALOG.model("llama-3.1-8b"))) == "bf16"


@pytest.mark.parametrize(
    ("engine", "stored", "precision", "part", "expected"),
    [
        ("vllm", "bf16", "fp8", MI300X, False),
        ("vllm", "bf16", "fp8", GAUDI, True),
        ("trtllm", "bf16", "fp16", H100, True),
        ("sglang", "fp32", "fp16", H100, False),
        ("vllm", "fp8", "bf16", H100, True),
        ("vllm", "bf16", "", H100, False),
    ],
)
def test_a_copy_is_needed_where_the_engine_does_not_convert(
    engine: str, stored: str, precision: str, part: object, expected: bool
) -> None:
    assert needs_copy(Stack(engine, part, precision), stored) == expected  # type: ignore[arg-type]
