from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from roofcast.features.coefficients import DEFAULT_COEFFICIENTS, PRIORS, Coefficients, Prior


def test_every_coefficient_has_a_prior_in_the_order_of_the_fields() -> None:
    assert tuple(PRIORS) == tuple(field.name for field in dataclasses.fields(Coefficients))


@pytest.mark.parametrize(("name", "prior"), PRIORS.items(), ids=PRIORS)
def test_a_prior_is_positive_sourced_and_the_default(name: str, prior: Prior) -> None:
    assert prior.median > 0
    assert prior.log_sd > 0
    assert prior.unit
    assert prior.source
    assert getattr(DEFAULT_COEFFICIENTS, name) == prior.median


def test_logarithms_go_there_and_back() -> None:
    values = np.linspace(-3, 3, len(PRIORS))
    np.testing.assert_allclose(DEFAULT_COEFFICIENTS.with_log(values).log(), values)


def test_the_wrong_number_of_logarithms_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        DEFAULT_COEFFICIENTS.with_log(np.zeros(3))
