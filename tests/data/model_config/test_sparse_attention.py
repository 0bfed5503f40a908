import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.data.specs import ModelSpec
from tests.data.model_config.model_configs import a_config

BLOCKS = {
    "use_sparse_attention": True, "sparse_attention_freq": [0, 0, 1, 1], "sparse_block_size": 128,
    "sparse_topk_blocks": 16,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "n_layer"), [("deepseek-ai/DeepSeek-V3.2", 61), ("zai-org/GLM-5", 78), ("zai-org/GLM-5.2", 78)]
)
def test_models_of_the_catalogue_have_the_sparse_attention_of_their_configs(name: str, n_layer: int) -> None:
    spec = load_catalog().model(name)
    assert (spec.n_sparse_layer, spec.sparse_top_k) == (n_layer, 2048)


def test_blocks_are_counted_in_tokens() -> None:
    spec = model_from_config(a_config(sparse_attention_config=BLOCKS), "m")
    assert (spec.n_sparse_layer, spec.sparse_top_k) == (2, 2048)
    for off in ({"use_sparse_attention": False}, {"sparse_attention_freq": [0, 0]}):
        spec = model_from_config(a_config(sparse_attention_config=BLOCKS | off), "m")
        assert (spec.n_sparse_layer, spec.sparse_top_k) == (0, 0)
    assert load_catalog().model("MiniMaxAI/MiniMax-M3").n_sparse_layer == 57


def test_every_model_with_an_indexer_in_its_note_is_sparse() -> None:
    noted = [spec for spec in load_catalog().models.values() if "index_topk" in spec.note]
    assert len(noted) == 4
    assert all(spec.n_sparse_layer == spec.n_layer for spec in noted)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"n_sparse_layer": 1}, "must be given together"),
        ({"sparse_top_k": 2048}, "must be given together"),
        ({"n_sparse_layer": 33, "sparse_top_k": 2048}, r"n_sparse_layer \+ n_linear_layer must not exceed n_layer"),
    ],
)
def test_an_impossible_combination_is_refused(changes: dict[str, int], problem: str) -> None:
    spec = load_catalog().model("meta-llama/Llama-2-7b-hf")
    with pytest.raises(InputError, match=problem):
        ModelSpec.parse(spec.model_dump(exclude={"layers"}) | changes)
