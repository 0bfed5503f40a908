"""Trained weights of LoRA against PEFT 0.21.2 on modules of Transformers 4.57.6 that were built without weights.

``sum(p.numel() for name, p in get_peft_model(...).named_parameters() if "lora_" in name)`` gave the counts, of models
with fewer layers and experts.
"""

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.features.jobs.methods import (
    LORA_TARGETS,
    adapter_width,
    expert_ratio,
    lora_fa_parameters,
    lora_parameters,
)

MODELS = load_catalog().models
MIXTRAL = MODELS["mistralai/Mixtral-8x7B-v0.1"]
DEEPSEEK = MODELS["deepseek-ai/DeepSeek-V3"].model_copy(update={"n_layer": 4, "n_expert": 4})
HYBRID = MODELS["Qwen/Qwen3-Next-80B-A3B-Instruct"].model_copy(
    update={"n_layer": 8, "n_linear_layer": 6, "n_expert": 4}
)
MLP = ("gate", "up", "down")


@pytest.mark.parametrize(
    ("targets", "count"), [(("q",), 327_680), (("k",), 81_920), (("v",), 81_920), (("o",), 196_608), (MLP, 4_915_200)]
)
def test_hybrids_have_attention_in_some_layers_alone(targets: tuple[str, ...], count: int) -> None:
    """Qwen3-Next with two layers of attention in eight, whose queries have gates, and a shared expert."""
    assert lora_parameters(HYBRID, 16, targets) == count


@pytest.mark.parametrize(
    ("targets", "count"),
    [(("q",), 2_228_224), (("k",), 2_625_536), (("v", "k"), 2_625_536), (("o",), 1_507_328), (MLP, 5_898_240)],
)
def test_latent_attention_projects_keys_and_values_once(targets: tuple[str, ...], count: int) -> None:
    """DeepSeek-V3 with three dense layers and one of four experts: ``kv_a_proj_with_mqa`` and ``kv_b_proj``."""
    assert lora_parameters(DEEPSEEK, 16, targets) == count


def test_a_token_passes_the_adapters_of_its_experts() -> None:
    """Two of eight, each 4,096 + 14,336 wide; queries read and write 8,192 in one layer of four."""
    assert adapter_width(MIXTRAL, MLP) == 2 * 3 * 18_432
    assert adapter_width(HYBRID, ("k",)) == (2048 + 512) / 4


def test_share_of_adapters_in_experts() -> None:
    """All of the MLP's; of LoRA-FA the outputs alone: 8 x (2 x 14,336 + 4,096) of these and 8,192 + 2,048."""
    assert expert_ratio(MIXTRAL, "", MLP) == 1
    assert expert_ratio(MIXTRAL, "", ("q", "v")) == 0
    share = 8 * (2 * 14_336 + 4096) / (8 * (2 * 14_336 + 4096) + 8192 + 2048)
    assert expert_ratio(MIXTRAL, "lora-fa", LORA_TARGETS) == pytest.approx(share)
    assert lora_fa_parameters(MIXTRAL, 1, LORA_TARGETS) == 32 * (8 * (2 * 14_336 + 4096) + 8192 + 2048)
