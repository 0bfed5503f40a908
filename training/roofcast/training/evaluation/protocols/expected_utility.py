"""Choose a profile and its pods by expected utility over draws of the predictive distribution."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from roofcast.training.evaluation.protocols.capacity import (
    NO_PROFILE,
    Choices,
    FloatArray,
    LatencyTable,
    Question,
    Rule,
    pods_for,
)


def expected_utility(draws: Mapping[str, LatencyTable]) -> Rule:
    """Return the rule that chooses by draws of each LLM's latencies, which carry a leading axis.

    A choice that serves every user is worth one less its overspend, below zero if that is great, and one that does
    not is worth nothing: what S/O rewards. So a pod too many is weighed against the chance that it is needed.
    """

    def rule(predicted: LatencyTable, questions: tuple[Question, ...], price_usd_per_h: FloatArray) -> Choices:
        capacity = draws[predicted.model].capacities(questions)
        best = [_best(capacity[:, i, :], question.n_user, price_usd_per_h) for i, question in enumerate(questions)]
        profile, n_pod = np.array(best, dtype=np.int64).T
        return Choices(profile, n_pod)

    return rule


def _best(capacity: np.ndarray, n_user: int, price_usd_per_h: FloatArray) -> tuple[int, int]:
    """Return profile and pods of greatest expected utility; `capacity` has shape (n_draw, n_profile)."""
    needed = pods_for(n_user, capacity)
    least_cost = (needed * price_usd_per_h).min(axis=1)
    can = np.isfinite(least_cost)
    choice, greatest = (NO_PROFILE, 0), -np.inf
    for profile, price in enumerate(price_usd_per_h):
        for n_pod in np.unique(needed[can, profile]):
            if np.isfinite(n_pod):
                worth = 2 - n_pod * price / least_cost[can]
                utility = float(np.where(needed[can, profile] <= n_pod, worth, 0.0).sum())
                if utility > greatest + 1e-9:
                    choice, greatest = (profile, int(n_pod)), utility
    return choice
