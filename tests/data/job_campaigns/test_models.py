from __future__ import annotations

from pathlib import Path

import pytest

from builders.job_campaigns.models import CUTS, GPT2_SHAPES, GPT2_VOCABULARY, build_models
from builders.job_campaigns.other_models import OTHERS, other_spec, with_kin
from roofcast.data.catalog import load_catalog
from roofcast.data.errors import SchemaError
from roofcast.data.job_campaigns import models
from roofcast.data.job_campaigns.models import (
    cut_id,
    cut_spec,
    gpt_id,
    gpt_spec,
    job_catalog,
    load_job_models,
    save_models,
)


def test_the_shipped_models_are_those_that_are_built(tmp_path: Path) -> None:
    save_models(build_models(), tmp_path / "models.csv")
    shipped = Path(models.__file__).with_name("models.csv")
    assert (tmp_path / "models.csv").read_text(encoding="utf-8") == shipped.read_text(encoding="utf-8")


def test_no_model_hides_one_of_the_catalogue() -> None:
    assert not {spec.id for spec in load_job_models()} & set(load_catalog().models)
    assert set(load_catalog().models) < set(job_catalog().models)


@pytest.mark.parametrize("size", GPT2_SHAPES)
def test_shapes_have_the_size_that_the_page_prints(size: str) -> None:
    spec = gpt_spec(*GPT2_SHAPES[size], 32, GPT2_VOCABULARY, 1024, page="experiments/gpt2.md")
    assert spec.n_param / 1e9 == pytest.approx(float(size[:-1]), rel=0.03)
    assert spec.id == gpt_id(*GPT2_SHAPES[size], 32, GPT2_VOCABULARY)


def test_the_176b_shape_has_its_size() -> None:
    assert gpt_spec(70, 14336, 112, page="a page").n_param == 176_263_987_200


@pytest.mark.parametrize("model", CUTS)
def test_a_cut_model_is_its_share_of_the_whole(model: str) -> None:
    whole = load_catalog().model(model)
    embedding = whole.vocab_size * whole.hidden_size * (1 if whole.tie_word_embeddings else 2)
    for n_layer in CUTS[model][0]:
        cut = job_catalog().model(cut_id(model, n_layer))
        share = (cut.n_param - embedding) / (whole.n_param - embedding)
        assert share == pytest.approx(n_layer / whole.n_layer, rel=0.01)
        assert cut.fold_group == whole.fold_group
        assert (cut.hidden_size, cut.vocab_size) == (whole.hidden_size, whole.vocab_size)


def test_a_cut_names_its_source() -> None:
    assert cut_spec(load_catalog().model("xai-org/grok-1"), 8, "a page").source == "a page"


def test_a_broken_row_is_named() -> None:
    with pytest.raises(SchemaError, match=r"models.csv, line 9: lineage: field required"):
        models._spec(9, {"id": "x"})


SIZES = {
    "nvidia/bert-4b": 4.0e9, "aws-neuron/gpt3-6.7b": 6.7e9, "aws-neuron/gpt3-23b": 23e9, "aws-neuron/gpt3-46b": 46e9,
    "nvidia/t5-220m": 220e6, "nvidia/t5-3b": 2.8e9, "nvidia/mt5-170m": 170e6, "nvidia/mt5-390m": 390e6,
    "google/t5-v1_1-small": 77e6, "google/t5-v1_1-large": 783e6, "maxtext/default-22b": 22e9,
    "maxtext/default-52b": 52e9, "openai-community/gpt2-xl": 1_557_611_200, "zai-org/chatglm3-6b": 6_243_584_000,
    "tiiuae/falcon-40b": 41_303_293_952, "01-ai/Yi-34B-200K": 34_388_917_248,
}  # fmt: skip
"""Weights as the name or the card says, or as the checkpoint holds; Falcon's without its second embedding."""


@pytest.mark.parametrize("name", SIZES)
def test_other_models_have_the_size_that_their_source_says(name: str) -> None:
    fields = next(fields for fields in OTHERS if fields["id"] == name)
    rtol = 0.04 if SIZES[name] % 1e6 == 0 else 0.002
    assert other_spec(fields).n_param == pytest.approx(SIZES[name], rel=rtol)


def test_models_of_one_shape_are_of_one_fold_group() -> None:
    groups = {spec.id: spec.fold_group for spec in load_job_models()}
    assert groups["nvidia/t5-3b"] == load_catalog().model("google/flan-t5-xl").fold_group
    assert groups["FacebookAI/roberta-large"] == groups["google-bert/bert-large-uncased"]
    twins = [other_spec(OTHERS[0]), other_spec(OTHERS[0] | {"id": "another/bert", "lineage": "another"})]
    assert len({spec.fold_group for spec in with_kin(twins, [])}) == 1
