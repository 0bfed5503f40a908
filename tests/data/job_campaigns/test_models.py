import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.job_campaigns import job_catalog, load_job_models
from roofcast.data.layer_kinds import text_param
from roofcast.data.specs import ModelSpec

MODELS = {spec.id: spec for spec in load_job_models()}
STATED = {
    "FacebookAI/roberta-large": 355_359_744, "google-bert/bert-large-uncased": 335_141_888,
    "maxtext/default-16b": 15_831_937_024, "nvidia/gpt3-126m": 125_226_240, "openai-community/gpt2-xl": 1_557_611_200,
    "bigscience/gpt-h14336-l70-a112": 176_263_987_200,
}  # fmt: skip
"""Weights that the source states: a checkpoint with learned positions, or the trained model."""

SIZES = {
    "nvidia/bert-4b": 4.0e9, "aws-neuron/gpt3-6.7b": 6.7e9, "aws-neuron/gpt3-23b": 23e9, "aws-neuron/gpt3-46b": 46e9,
    "nvidia/t5-220m": 220e6, "nvidia/t5-3b": 2.8e9, "nvidia/mt5-170m": 170e6, "nvidia/mt5-390m": 390e6,
    "google/t5-v1_1-small": 77e6, "google/t5-v1_1-large": 783e6, "maxtext/default-22b": 22e9,
    "maxtext/default-52b": 52e9, "openai-community/gpt2-xl": 1_557_611_200, "zai-org/chatglm3-6b": 6_243_584_000,
    "tiiuae/falcon-40b": 41_303_293_952, "01-ai/Yi-34B-200K": 34_388_917_248,
    "bigscience/gpt-h4096-l36-a32-gpt2": 7.5e9, "bigscience/gpt-h6144-l40-a32-gpt2": 18e9,
    "bigscience/gpt-h7168-l40-a32-gpt2": 25e9, "bigscience/gpt-h7168-l48-a32-gpt2": 30e9,
    "bigscience/gpt-h8192-l48-a32-gpt2": 39e9, "bigscience/gpt-h8192-l64-a32-gpt2": 52e9,
    "bigscience/gpt-h9216-l64-a32-gpt2": 65e9, "bigscience/gpt-h11264-l64-a32-gpt2": 97e9,
    "bigscience/gpt-h12288-l64-a32-gpt2": 116e9, "bigscience/gpt-h16384-l64-a32-gpt2": 206e9,
}  # fmt: skip
"""Weights as the name or the card says, or as the checkpoint holds; Falcon's without its second embedding."""


def gpt_count(spec: ModelSpec) -> int:
    layers = spec.n_layer * (12 * spec.hidden_size**2 + 13 * spec.hidden_size)
    return layers + (spec.vocab_size + spec.max_context_token + 2) * spec.hidden_size


def widths(spec: ModelSpec) -> tuple[int, ...]:
    sizes = (spec.hidden_size, spec.intermediate_size, spec.n_head, spec.n_kv_head, spec.n_expert)
    return (spec.n_layer, spec.n_encoder_layer, *sizes)


def test_no_model_hides_one_of_the_catalogue() -> None:
    assert not MODELS.keys() & load_catalog().models.keys()
    assert set(load_catalog().models) < set(job_catalog().models)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_stated_or_follow_from_the_shape(name: str) -> None:
    spec = MODELS[name]
    tables = spec.vocab_size * spec.hidden_size * (1 if spec.tie_word_embeddings else 2)
    further = sum(getattr(kind, "n_param_further", 0) for kind in spec.layers)
    plain = text_param(spec.layers, spec.hidden_size) - further + tables
    counted = gpt_count(spec) if name.startswith("bigscience/") else plain
    assert spec.n_param == (STATED.get(name) or pytest.approx(counted, rel=2e-3))


@pytest.mark.parametrize("name", SIZES)
def test_models_have_the_size_that_their_source_says(name: str) -> None:
    rtol = 0.04 if SIZES[name] % 1e6 == 0 else 0.002
    assert MODELS[name].n_param == pytest.approx(SIZES[name], rel=rtol)


def test_models_of_one_shape_are_of_one_fold_group() -> None:
    specs = [spec for spec in (*load_catalog().models.values(), *MODELS.values()) if "bigscience" not in spec.id]
    groups: dict[tuple[int, ...], set[str]] = {}
    for spec in specs:
        groups.setdefault(widths(spec), set()).add(spec.fold_group)
    assert all(len(groups[widths(spec)]) == 1 for spec in MODELS.values() if "bigscience" not in spec.id)
    assert {spec.fold_group for spec in MODELS.values() if "bigscience" in spec.id} == {
        "bigscience-gpt2-sweep", "bigscience-tr11-sweep",
    }  # fmt: skip


@pytest.mark.parametrize("name", [name for name in MODELS if "-cut-to-" in name])
def test_a_cut_model_is_its_share_of_the_whole(name: str) -> None:
    cut, whole = MODELS[name], load_catalog().model(name.partition("-cut-to-")[0])
    embedding = whole.vocab_size * whole.hidden_size * (1 if whole.tie_word_embeddings else 2)
    share = (cut.n_param - embedding) / (whole.n_param - embedding)
    assert name == f"{whole.id}-cut-to-{cut.n_layer}-layers"
    assert share == pytest.approx(cut.n_layer / whole.n_layer, rel=0.01)
    assert (cut.fold_group, cut.hidden_size, cut.vocab_size) == (
        whole.fold_group, whole.hidden_size, whole.vocab_size,
    )  # fmt: skip
