"""Weights of the catalogue's layers agree with the published totals."""

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.specs import ModelSpec
from tests.every_row import for_every

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
