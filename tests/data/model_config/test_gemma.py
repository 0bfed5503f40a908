"""Gemma 3n and 4: embeddings for every layer are looked up, global layers are wider, late layers share keys."""

from typing import Any

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.data.specs import ModelSpec
from tests.data.model_config.model_configs import CONFIGS

E2B, E4B, LARGE, MIXTURE, GEMMA_3N = (
    CONFIGS[f"gemma-{name}"] for name in ("4-e2b", "4-e4b", "4-31b", "4-26b-a4b", "3n-e4b")
)


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
    shared = (
        "n_layer", "n_sliding_layer", "sliding_window", "n_expert", "n_shared_expert",
        "shared_expert_intermediate_size", "n_dense_layer", "intermediate_size",
    )  # fmt: skip
    assert [getattr(spec, field) for field in shared] == [getattr(expected, field) for field in shared]


def test_an_embedding_for_every_layer_is_looked_up() -> None:
    assert read(E4B, vocab_size_per_layer_input=1000).n_param_lookup == 42 * 1000 * 256
    for name, n_param in (("google/gemma-4-E2B-it", 35 * 262144 * 256), ("google/gemma-4-E4B-it", 42 * 262144 * 256)):
        assert load_catalog().model(name).n_param_lookup == n_param


def test_gemma_3n_is_counted_with_its_streams() -> None:
    spec = read(GEMMA_3N)
    assert spec.n_param == pytest.approx(6.87e9, rel=0.002)  # the text model, as its maker rounds it
    assert read(GEMMA_3N, intermediate_size=16384) == spec


def test_the_text_model_of_a_multimodal_config_is_read() -> None:
    assert read({"model_type": "gemma4", "text_config": E2B, "vision_config": {}}) == read(E2B)


def test_lookup_weights_beyond_the_total_are_refused() -> None:
    spec = read(E2B)
    with pytest.raises(InputError, match=r"n_param_lookup .* must be below n_param_active"):
        ModelSpec.parse(spec.model_dump(exclude={"layers"}) | {"n_param_lookup": spec.n_param})
