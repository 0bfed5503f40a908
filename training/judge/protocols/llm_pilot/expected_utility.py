"""Choose a profile and its pods by expected utility over draws of the predictive distribution."""

from collections.abc import Mapping

import numpy as np

from judge.protocols.llm_pilot.capacity import (
    NO_PROFILE,
    Choices,
    Demand,
    FloatArray,
    LatencyTable,
    Rule,
    pods_for,
)


def expected_utility(draws: Mapping[str, LatencyTable]) -> Rule:
    """Return the decision rule for draws of each LLM's latencies, which have a leading axis.

    The utility of a choice is one minus its overspend if it serves all users, possibly negative, and zero otherwise,
    as in the S/O score. An additional pod is weighed against the probability that it is needed.
    """

    def rule(predicted: LatencyTable, demands: tuple[Demand, ...], price_usd_per_h: FloatArray) -> Choices:
        capacity = draws[predicted.model].capacities(demands)
        best = [_best_choice(capacity[:, i, :], demand.n_user, price_usd_per_h) for i, demand in enumerate(demands)]
        profile, n_pod = np.array(best, dtype=np.int64).T
        return Choices(profile, n_pod)

    return rule


def _best_choice(capacity: np.ndarray, n_user: int, price_usd_per_h: FloatArray) -> tuple[int, int]:
    """Return profile and pods of maximal expected utility; `capacity` has shape (n_draw, n_profile)."""
    needed = pods_for(n_user, capacity)
    least_cost = (needed * price_usd_per_h).min(axis=1)
    can_answer = np.isfinite(least_cost)
    choice, greatest = (NO_PROFILE, 0), -np.inf
    for profile, price in enumerate(price_usd_per_h):
        for n_pod in np.unique(needed[can_answer, profile]):
            if np.isfinite(n_pod):
                worth = 2 - n_pod * price / least_cost[can_answer]
                utility = float(np.where(needed[can_answer, profile] <= n_pod, worth, 0.0).sum())
                if utility > greatest + 1e-9:
                    choice, greatest = (profile, int(n_pod)), utility
    return choice
