"""Which GPU profile to rent, and how many pods of it, so that a number of users stays within two latency limits.

The arithmetic of LLM-Pilot's recommendation on plain arrays. The conventions are those of the code published with
the paper:

- A latency equal to its limit meets it.
- Users are walked upward from the least measured number, and the walk ends at the first latency above the limit or at
  the first that is NaN; what lies beyond counts for nothing even if it would meet the limit again. Each latency is
  walked by itself, and the smaller of the two numbers is what one pod can serve.
- A profile that cannot serve the least number of users is no candidate; with no candidate there is no recommendation,
  which is a failure.
- Of several profiles with the same predicted cost the first one is taken. Ties are common, for a machine with two
  GPUs costs exactly twice the machine with one. The order is the caller's.
- The cost of a recommendation is that of the pods it asks for, whether or not they are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

NO_PROFILE: Final = -1


class Question(NamedTuple):
    """A demand: so many users, each served within both limits."""

    nttft_limit_s_per_token: float
    itl_limit_s: float
    n_user: int


@dataclass(frozen=True)
class LatencyTable:
    """Latencies of one LLM over GPU profiles and numbers of users.

    `users` has shape (n_level,) and rises; the latencies have shape (n_profile, n_level), NaN where there is none.
    Either may carry leading axes, one for each draw of a distribution.
    """

    model: str
    profiles: tuple[str, ...]
    users: IntArray
    nttft_s_per_token: FloatArray
    itl_s: FloatArray

    def capacities(self, questions: tuple[Question, ...]) -> IntArray:
        """Return how many users one pod serves within the limits, shape (..., n_question, n_profile)."""
        limits = np.array([question[:2] for question in questions], dtype=np.float64)
        by_nttft = users_within(self.nttft_s_per_token[..., None, :, :], limits[:, 0, None], self.users)
        by_itl = users_within(self.itl_s[..., None, :, :], limits[:, 1, None], self.users)
        return np.minimum(by_nttft, by_itl)


@dataclass(frozen=True)
class Choices:
    """A recommendation for each question: index of the profile (`NO_PROFILE` for none) and its number of pods."""

    profile: IntArray
    n_pod: IntArray


class Rule(Protocol):
    """How to choose: from predicted latencies, questions and prices to a profile and its pods."""

    def __call__(
        self, predicted: LatencyTable, questions: tuple[Question, ...], price_usd_per_h: FloatArray, /
    ) -> Choices:
        """Return one choice for each question; `price_usd_per_h` has shape (n_profile,)."""
        ...


@dataclass(frozen=True)
class Verdicts:
    """What a choice for each question is worth; every array has shape (n_question,).

    `can_answer` says whether any profile truly meets the limits. Costs are NaN where there is nothing to pay for.
    """

    can_answer: BoolArray
    cost_usd_per_h: FloatArray
    least_cost_usd_per_h: FloatArray
    measured_users: IntArray
    is_success: BoolArray


def users_within(latency_s: FloatArray, limit_s: FloatArray | float, users: IntArray) -> IntArray:
    """Return the last number of users before the latency first exceeds its limit; 0 if it does so at once.

    Parameters
    ----------
    latency_s : shape (..., n_level)
        Latency at each number of users.
    limit_s : shape (...)
        Limit that applies to all levels.
    users : shape (n_level,), rising
        Numbers of users.

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
    """Return how many pods serve all users, infinite where one pod serves none.

    Examples
    --------
    >>> pods_for(200, np.array([0, 1, 64, 128])).tolist()
    [inf, 200.0, 4.0, 2.0]
    """
    with np.errstate(divide="ignore"):
        return np.ceil(np.asarray(n_user, dtype=np.float64) / capacity)


def cheapest(predicted: LatencyTable, questions: tuple[Question, ...], price_usd_per_h: FloatArray) -> Choices:
    """Return the profile of least cost by the predicted latencies taken at their word; the first one of a tie.

    Examples
    --------
    >>> table = LatencyTable("m", ("1 x A", "2 x A"), np.array([1, 2]), np.ones((2, 2)),
    ...                      np.array([[1.0, 9.0], [1.0, 2.0]]))
    >>> choices = cheapest(table, (Question(1, 2, 4), Question(1, 2, 3)), np.array([2.0, 3.0]))
    >>> choices.profile.tolist(), choices.n_pod.tolist()
    ([1, 0], [2, 3])
    """
    n_pod = pods_for(_users_asked(questions), predicted.capacities(questions))
    profile = np.argmin(n_pod * price_usd_per_h, axis=-1)
    chosen = np.take_along_axis(n_pod, profile[:, None], axis=-1)[:, 0]
    has_one = np.isfinite(chosen)
    return Choices(np.where(has_one, profile, NO_PROFILE), np.where(has_one, chosen, 0).astype(np.int64))


def judge(
    choices: Choices, measured: LatencyTable, questions: tuple[Question, ...], price_usd_per_h: FloatArray
) -> Verdicts:
    """Return how the choices fare by the measured latencies.

    A choice succeeds if its pods truly serve every user; the least cost is that of the best choice with hindsight.
    """
    capacity = measured.capacities(questions)
    n_user = _users_asked(questions)
    least_cost = (pods_for(n_user, capacity) * price_usd_per_h).min(axis=-1)
    can_answer = np.isfinite(least_cost)
    has_one = choices.profile != NO_PROFILE
    index = np.where(has_one, choices.profile, 0)
    users = np.where(has_one, np.take_along_axis(capacity, index[:, None], axis=-1)[:, 0], 0)
    return Verdicts(
        can_answer=can_answer,
        cost_usd_per_h=np.where(has_one, choices.n_pod * price_usd_per_h[index], np.nan),
        least_cost_usd_per_h=np.where(can_answer, least_cost, np.nan),
        measured_users=users,
        is_success=has_one & (choices.n_pod * users >= n_user[:, 0]),
    )


def _users_asked(questions: tuple[Question, ...]) -> IntArray:
    return np.array([[question.n_user] for question in questions], dtype=np.int64)
