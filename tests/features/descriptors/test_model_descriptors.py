import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.specs import ModelSpec
from roofcast.features.descriptors.model_descriptors import describe_model
from tests.builders import a_model
from tests.every_row import for_every

CATALOG = load_catalog()


def expert_param(spec: ModelSpec) -> float:
    return describe_model(spec)["model.n_param_expert"]


def encoder_param(spec: ModelSpec) -> float:
    return describe_model(spec)["model.n_param_encoder"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (CATALOG.model("llama-3-8b"), {"kv_width": 32 * 2 * 8 * 128, "kv_width_sliding": 0}),
        (CATALOG.model("deepseek-v3"), {"kv_width": 61 * (512 + 64), "kv_width_sliding": 0}),
        (CATALOG.model("flan-t5-xl"), {"kv_width": 24 * 2 * 32 * 64, "kv_width_sliding": 0}),
        (CATALOG.model("gemma-2-9b"), {"kv_width": 21 * 2 * 8 * 256, "kv_width_sliding": 21 * 2 * 8 * 256}),
        (CATALOG.model("mistral-7b-v0.1"), {"kv_width": 0, "kv_width_sliding": 32 * 2 * 8 * 128}),
        (CATALOG.model("gpt-oss-20b"), {"kv_width": 12 * 2 * 8 * 64, "kv_width_sliding": 12 * 2 * 8 * 64}),
        (CATALOG.model("deepseek-v3.2"), {"n_sparse_layer": 61, "sparse_top_k": 2048}),
        (CATALOG.model("deepseek-v4-pro"), {"kv_width": 3964, "kv_width_layer": 512, "kv_width_sliding": 61 * 512}),
        (CATALOG.model("mimo-v2-flash"), {"decode_qk_dim": 192, "decode_v_dim": 128, "kv_width_layer": 4 * 320}),
        (CATALOG.model("qwen3.5-27b"), {"kv_width": 16 * 2 * 4 * 256, "state_byte": 153_944_064, "n_mlp_layer": 64}),
        (CATALOG.model("gemma-4-31b-it"), {"kv_width": 10 * 2 * 4 * 512, "kv_width_sliding": 50 * 2 * 16 * 256}),
        (CATALOG.model("glm-5"), {"kv_width": 78 * 576, "index_byte": 78 * 132}),
        (a_model(n_linear_layer=24), {"n_full_layer": 8, "kv_width": 8 * 2 * 32 * 128}),
    ],
    ids=lambda value: value.id if isinstance(value, ModelSpec) else "",
)
def test_the_cache_of_a_token_by_kind_of_attention(spec: ModelSpec, expected: dict[str, int]) -> None:
    descriptors = describe_model(spec)
    assert {name: descriptors[f"model.{name}"] for name in expected} == expected


@for_every([s for s in CATALOG.models.values() if s.n_expert])
def test_routed_experts_make_up_the_weights_that_a_token_leaves_out(spec: ModelSpec) -> None:
    idle = expert_param(spec) * (1 - spec.n_expert_per_token / spec.n_expert)
    assert idle == pytest.approx(spec.n_param - spec.n_param_active, rel=1e-3)


def test_a_model_without_experts_has_no_expert_weights() -> None:
    assert expert_param(a_model()) == 0


def test_plain_experts_have_two_matrices_and_gated_ones_three() -> None:
    moe = {"n_layer": 4, "n_dense_layer": 1, "n_expert": 8, "n_expert_per_token": 2, "moe_intermediate_size": 10}
    assert expert_param(a_model(**moe, hidden_size=100)) == 3 * 8 * 3 * 100 * 10
    assert expert_param(a_model(**moe, hidden_size=100, mlp_gated=False)) == 3 * 8 * 2 * 100 * 10


def test_encoder_layers_have_four_attention_matrices_and_an_mlp() -> None:
    spec = CATALOG.model("flan-t5-xl")
    assert encoder_param(spec) == 24 * (4 * 2048 * 2048 + 3 * 2048 * 5120)
    assert encoder_param(a_model()) == 0


def test_a_decode_step_reads_tied_embeddings_once_as_the_head() -> None:
    untied, tied = a_model(), a_model(tie_word_embeddings=True)
    assert describe_model(untied)["model.n_param_dense"] == untied.n_param - 32000 * 4096
    assert describe_model(tied)["model.n_param_dense"] == tied.n_param


def test_a_decode_step_reads_neither_encoder_nor_idle_experts() -> None:
    spec = CATALOG.model("deepseek-v3")
    dense = describe_model(spec)["model.n_param_dense"]
    assert dense == spec.n_param - expert_param(spec) - 129280 * 7168
    flan = CATALOG.model("flan-t5-xl")
    assert describe_model(flan)["model.n_param_dense"] == flan.n_param - encoder_param(flan) - 32128 * 2048


def test_weights_read_stay_positive_where_a_spec_undercounts() -> None:
    assert describe_model(a_model(n_param=1000, n_param_active=1000))["model.n_param_dense"] == 4096


def test_mla_holds_one_latent_and_one_rotary_key_on_every_rank() -> None:
    spec = a_model(attention="mla", kv_lora_rank=512, qk_rope_head_dim=64)
    assert describe_model(spec)["model.kv_width_layer"] == 576
    assert describe_model(spec)["model.n_kv_head"] == 1


def test_a_plain_model_has_the_products_of_its_paper() -> None:
    d = describe_model(a_model())
    assert d["model.mixer_in_width"] == pytest.approx(3 * 4096, rel=0.001)
    assert (d["model.mixer_out_width"], d["model.mlp_width"], d["model.n_mlp_matrix"]) == (4096, 11008, 3)


def test_attention_of_deepseek_works_on_the_latent_in_decode_only() -> None:
    d = describe_model(CATALOG.model("deepseek-v3"))
    assert (d["model.qk_dim"], d["model.v_dim"]) == (192, 128)
    assert (d["model.decode_qk_dim"], d["model.decode_v_dim"], d["model.kv_width_layer"]) == (576, 512, 576)
    assert (d["model.n_mla_layer"], d["model.n_moe_layer"], d["model.n_mlp_layer"]) == (61, 58, 61)
    assert d["model.mlp_width"] == pytest.approx((3 * 18432 + 58 * 2048) / 61)
    latent = (7168 + 128 * 192) * 1536 + 7168 * 576 + 512 * 128 * 256
    router = 58 / 61 * 256
    assert d["model.mixer_in_width"] == pytest.approx(latent / 7168 + router, rel=0.001)
    assert d["model.mixer_out_width"] == 128 * 128


def test_a_context_without_limit_is_infinite() -> None:
    assert describe_model(a_model())["model.max_context_token"] == float("inf")
    assert describe_model(a_model(max_context_token=4096))["model.max_context_token"] == 4096
    t5 = a_model(max_context_token=512, n_encoder_layer=24)
    assert describe_model(t5)["model.max_context_token"] == 512, (
        "the limit itself is decided in `validity.model_limits`"
    )


@for_every(CATALOG.models.values())
def test_mixers_mlps_and_head_make_up_what_a_step_reads(spec: ModelSpec) -> None:
    d = describe_model(spec)
    mixer = d["model.n_layer"] * d["model.hidden_size"] * (d["model.mixer_in_width"] + d["model.mixer_out_width"])
    mlp = d["model.n_mlp_layer"] * d["model.n_mlp_matrix"] * d["model.hidden_size"] * d["model.mlp_width"]
    head = d["model.vocab_size"] * d["model.hidden_size"]
    assert mixer + mlp + head == pytest.approx(d["model.n_param_dense"])
    assert min(d["model.mixer_in_width"], d["model.mixer_out_width"]) > 0


@for_every(CATALOG.models.values())
def test_no_model_reads_more_than_it_has(spec: ModelSpec) -> None:
    d = describe_model(spec)
    parts = d["model.n_param_dense"] + d["model.n_param_expert"] + d["model.n_param_encoder"]
    assert 0 < d["model.n_param_dense"] <= parts <= d["model.n_param"]
