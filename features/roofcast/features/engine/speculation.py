"""Speculative decoding: tokens per step, and decode steps per token."""

from __future__ import annotations

import numpy as np

from roofcast.features.engine.coefficients import RowCoefficients
from roofcast.features.queries import FloatArray, Queries


def token_cost(d: Queries, c: RowCoefficients) -> FloatArray:
    """Return the decode steps per token of a sequence: 1, or less with accepted speculation.

    The acceptance probability is the query's, or the coefficient where it is unknown.
    """
    n_draft = d["config.n_draft_token"]
    given = d["config.acceptance_ratio"]
    chance = np.where(np.isnan(given), c["acceptance"], given)
    return (1 + n_draft * c["draft_ratio"]) / n_accepted(chance, n_draft)


def n_accepted(acceptance: FloatArray, n_draft: FloatArray) -> FloatArray:
    """Return the expected tokens per step and sequence: accepted drafts in a row, plus one.

    References
    ----------
    Y. Leviathan, M. Kalman and Y. Matias, "Fast Inference from Transformers via Speculative Decoding", ICML 2023,
    equation 1.

    Examples
    --------
    Three drafts, each accepted with probability 0.7:

    >>> n_accepted(np.array([0.7]), np.array([3.0])).round(3)
    array([2.533])
    """
    chance = np.minimum(acceptance, 0.999)
    return np.asarray((1 - chance ** (n_draft + 1)) / (1 - chance))
