"""Weights counted from the catalogue's shapes agree with the published totals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.data.catalog import load_catalog
from roofcast.data.model_config.parameters.parameters import count_parameters, shape_from_spec
from roofcast.data.specs import ModelSpec
from tests.every_row import for_every

REASONS = {
    "google/gemma-4": "layers of several widths, keys shared with values, embeddings per layer",
    "meta-models/Muse-Glimmer": "full-attention layers of another width",
    "poolside/Laguna": "72 query heads in sliding layers, 48 in the others",
    "XiaomiMiMo/MiMo-V2": "8 key-value heads in sliding layers, 4 in the others",
    "stepfun-ai/Step-3": "96 query heads in sliding layers, 64 in the others",
    "deepseek-ai/DeepSeek-V3.2": "the indexer of sparse attention is counted with the active weights",
    "deepseek-ai/DeepSeek-V4": "latents without a projection back to heads, compressors, indexers",
    "deepseek-ai/DeepSeek-Math-V2": "the indexer of sparse attention is counted with the active weights",
    "zai-org/GLM-5": "the indexer of sparse attention is counted with the active weights",
    "mosaicml/mpt-125m": "learned positions, which a spec does not hold",
}


def _is_standard(spec: ModelSpec) -> bool:
    has_other_layers = spec.n_linear_layer > 0
    return not has_other_layers and not spec.id.startswith(tuple(REASONS))


STANDARD = [spec for spec in load_catalog().models.values() if _is_standard(spec)]


@for_every(STANDARD)
def test_weights_agree_within_a_hundredth(spec: ModelSpec) -> None:
    n_param, n_param_active = count_parameters(shape_from_spec(spec))

    assert n_param == pytest.approx(spec.n_param, rel=0.01)
    assert n_param_active == pytest.approx(spec.n_param_active, rel=0.01)


def test_most_models_are_standard() -> None:
    assert len(STANDARD) > 0.75 * len(load_catalog().models)


def test_each_exception_is_needed() -> None:
    models = load_catalog().models.values()
    for prefix in REASONS:
        members = [spec for spec in models if spec.id.startswith(prefix)]
        worst = max(
            abs(counted / known - 1)
            for spec in members
            for counted, known in zip(
                count_parameters(shape_from_spec(spec)), (spec.n_param, spec.n_param_active), strict=True
            )
        )
        assert worst > 0.01, prefix


PUBLISHED = [spec for spec in load_catalog().models.values() if spec.n_param_published]


@for_every(PUBLISHED)
def test_weights_equal_the_published_total_or_a_reason_is_given(spec: ModelSpec) -> None:
    assert spec.n_param_published
    assert spec.n_param_published_source or spec.source
    if abs(spec.n_param / spec.n_param_published - 1) > 0.01:
        assert spec.n_param_difference


def test_most_models_have_a_published_count_and_most_agree() -> None:
    agreeing = [s for s in PUBLISHED if abs(s.n_param / (s.n_param_published or 1) - 1) <= 0.01]

    assert len(PUBLISHED) > 0.9 * len(load_catalog().models)
    assert len(agreeing) > 0.6 * len(PUBLISHED)


def _surplus(spec: ModelSpec) -> float:
    return (spec.n_param_published or 0) - spec.n_param


@for_every([s for s in PUBLISHED if "embedding twice" in s.n_param_difference])
def test_a_tied_embedding_counted_twice_explains_the_difference(spec: ModelSpec) -> None:
    assert _surplus(spec) == pytest.approx(spec.vocab_size * spec.hidden_size, rel=0.01)


@for_every([s for s in PUBLISHED if "prediction" in s.n_param_difference])
def test_models_with_further_modules_have_a_larger_published_total(spec: ModelSpec) -> None:
    assert 0 < _surplus(spec) < 0.25 * (spec.n_param_published or 0)


@for_every([s for s in PUBLISHED if "rounded" in s.n_param_difference])
def test_a_rounded_figure_has_few_digits(spec: ModelSpec) -> None:
    assert len(str(spec.n_param_published).rstrip("0")) <= 4


@given(st.sampled_from(STANDARD), st.integers(1, 64))
def test_more_layers_never_weigh_less(spec: ModelSpec, n_more: int) -> None:
    deeper = spec.model_copy(update={"n_layer": spec.n_layer + n_more})

    assert count_parameters(shape_from_spec(deeper)) > count_parameters(shape_from_spec(spec))
