"""LLM-Pilot's recommendation: the GPU profile and pods that serve a number of users within two latency limits.

Arithmetic of LLM-Pilot's recommendation on plain arrays, with the conventions of the code published with the paper:

- A latency equal to its limit meets it.
- The number of users increases from the least measured one until the first latency that exceeds the limit or is NaN;
  a latency that meets the limit again beyond is ignored. This is done for each latency; the smaller number is the
  capacity of a pod.
- A profile that cannot serve the least number of users is no candidate; without a candidate there is no
  recommendation, which counts as a failure.
- Of profiles with equal predicted cost the first is chosen, in the caller's order. Ties are common, because a machine
  with two GPUs costs exactly twice the machine with one.
- The cost of a recommendation is that of its pods, whether or not they suffice.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

NO_PROFILE: Final = -1


class Demand(NamedTuple):
    """A demand: a number of users, each to be served within both limits."""

    nttft_limit_s_per_token: float
    itl_limit_s: float
    n_user: int


@dataclass(frozen=True)
class LatencyTable:
    """Latencies of one LLM by GPU profile and number of users.

    `users` has shape (n_level,) and increases; latencies have shape (n_profile, n_level), NaN if unknown, with
    optional leading axes for draws of a distribution.
    """

    model: str
    profiles: tuple[str, ...]
    users: IntArray
    nttft_s_per_token: FloatArray
    itl_s: FloatArray

    def capacities(self, demands: tuple[Demand, ...]) -> IntArray:
        """Return the users that one pod serves within the limits: shape (..., n_demand, n_profile)."""
        limits = np.array([demand[:2] for demand in demands], dtype=np.float64)
        by_nttft = users_within(self.nttft_s_per_token[..., None, :, :], limits[:, 0, None], self.users)
        by_itl = users_within(self.itl_s[..., None, :, :], limits[:, 1, None], self.users)
        return np.minimum(by_nttft, by_itl)


@dataclass(frozen=True)
class Choices:
    """Recommended profile index (`NO_PROFILE` for none) and number of pods for each demand."""

    profile: IntArray
    n_pod: IntArray


class Rule(Protocol):
    """Decision rule: from predicted latencies, demands and prices to profiles and pods."""

    def __call__(
        self, predicted: LatencyTable, demands: tuple[Demand, ...], price_usd_per_h: FloatArray, /
    ) -> Choices:
        """Return one choice for each demand; `price_usd_per_h` has shape (n_profile,)."""
        ...


@dataclass(frozen=True)
class Outcomes:
    """Outcome of the choice for each demand; arrays have shape (n_demand,).

    `can_answer` is whether any profile meets the limits by measurement. Costs are NaN without a choice.
    """

    can_answer: BoolArray
    cost_usd_per_h: FloatArray
    least_cost_usd_per_h: FloatArray
    measured_users: IntArray
    is_success: BoolArray


def users_within(latency_s: FloatArray, limit_s: FloatArray | float, users: IntArray) -> IntArray:
    """Return the last number of users before the latency first exceeds its limit; 0 if the first one does.

    - `latency_s`: shape (..., n_level). Latency by number of users.
    - `limit_s`: shape (...). Limit that applies to all levels.
    - `users`: shape (n_level,), rising. Numbers of users.

    Examples
    --------
    >>> users_within(np.array([0.02, 0.05, 0.06, 0.04]), 0.05, np.array([1, 2, 4, 8])).item()
    2
    """
    meets = latency_s <= np.asarray(limit_s, dtype=np.float64)[..., None]
    n_met = np.logical_and.accumulate(meets, axis=-1).sum(axis=-1)
    served: IntArray = np.concatenate([np.zeros(1, dtype=np.int64), users])[n_met]
    return served


def pods_for(n_user: FloatArray | IntArray | int, capacity: IntArray) -> FloatArray:
    """Return the pods that serve all users; infinite if one pod serves none.

    Examples
    --------
    >>> pods_for(200, np.array([0, 1, 64, 128])).tolist()
    [inf, 200.0, 4.0, 2.0]
    """
    with np.errstate(divide="ignore"):
        return np.ceil(np.asarray(n_user, dtype=np.float64) / capacity)


def cheapest(predicted: LatencyTable, demands: tuple[Demand, ...], price_usd_per_h: FloatArray) -> Choices:
    """Return the cheapest profile by the predicted latencies, without uncertainty; the first of a tie.

    Examples
    --------
    >>> table = LatencyTable("m", ("1 x A", "2 x A"), np.array([1, 2]), np.ones((2, 2)),
    ...                      np.array([[1.0, 9.0], [1.0, 2.0]]))
    >>> choices = cheapest(table, (Demand(1, 2, 4), Demand(1, 2, 3)), np.array([2.0, 3.0]))
    >>> choices.profile.tolist(), choices.n_pod.tolist()
    ([1, 0], [2, 3])
    """
    n_pod = pods_for(_demanded_users(demands), predicted.capacities(demands))
    profile = np.argmin(n_pod * price_usd_per_h, axis=-1)
    chosen_pod = np.take_along_axis(n_pod, profile[:, None], axis=-1)[:, 0]
    has_one = np.isfinite(chosen_pod)
    return Choices(np.where(has_one, profile, NO_PROFILE), np.where(has_one, chosen_pod, 0).astype(np.int64))


def evaluate_choices(
    choices: Choices, measured: LatencyTable, demands: tuple[Demand, ...], price_usd_per_h: FloatArray
) -> Outcomes:
    """Return the outcome of the choices by the measured latencies.

    A choice succeeds if its pods serve all users; the least cost is that of the best choice in hindsight.
    """
    capacity = measured.capacities(demands)
    n_user = _demanded_users(demands)
    least_cost = (pods_for(n_user, capacity) * price_usd_per_h).min(axis=-1)
    can_answer = np.isfinite(least_cost)
    has_one = choices.profile != NO_PROFILE
    index = np.where(has_one, choices.profile, 0)
    users = np.where(has_one, np.take_along_axis(capacity, index[:, None], axis=-1)[:, 0], 0)
    return Outcomes(
        can_answer=can_answer,
        cost_usd_per_h=np.where(has_one, choices.n_pod * price_usd_per_h[index], np.nan),
        least_cost_usd_per_h=np.where(can_answer, least_cost, np.nan),
        measured_users=users,
        is_success=has_one & (choices.n_pod * users >= n_user[:, 0]),
    )


def _demanded_users(demands: tuple[Demand, ...]) -> IntArray:
    return np.array([[demand.n_user] for demand in demands], dtype=np.int64)
