import numpy as np
import pytest

from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.engine_names import ALIASES, describe_engines, nearest_engine


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        *((engine, engine) for engine in ENGINES),
        ("ollama", "llama.cpp"),
        ("ik_llama.cpp", "llama.cpp"),
        ("beellama.cpp", "llama.cpp"),
        ("llama.cpp (prism-ml fork)", "llama.cpp"),
        ("ipex-llm (llama.cpp)", "llama.cpp"),
        ("mlx-lm", "llama.cpp"),
        ("mistral.rs", "llama.cpp"),
        ("ATOM", "vllm"),
        ("vllm-ascend", "vllm"),
        ("LLM-D", "vllm"),
        ("TensorRT-LLM", "trtllm"),
        ("tgis", "tgis"),
        ("KTransformers", "other"),
        ("JetStream", "other"),
        ("MindIE", "other"),
        ("pegainfer", "other"),
    ],
)
def test_names_fall_to_their_family_or_to_other(name: str, engine: str) -> None:
    assert nearest_engine(name) == engine


def test_aliases_are_no_engines_and_lead_to_engines() -> None:
    assert not set(ALIASES) & set(ENGINES)
    assert set(ALIASES.values()) <= set(ENGINES)


def test_codes_index_the_engines() -> None:
    names = np.array(["ollama", "vllm", "unknown"], dtype=object)
    codes = describe_engines(names).code
    assert [ENGINES[int(code)] for code in codes] == ["llama.cpp", "vllm", "other"]
