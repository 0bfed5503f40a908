"""Decisions under risk, on tables small enough to work out by hand."""

import numpy as np
import pytest

from judge.protocols.llm_pilot.capacity import NO_PROFILE, Demand, LatencyTable, cheapest
from judge.protocols.llm_pilot.expected_utility import expected_utility

USERS = np.array([1, 2, 4, 8])
OK, LATE = 1.0, 9.0


def latencies(capacity: int) -> list[float]:
    """Return latencies that stay within a limit of 1 up to so many users."""
    return [OK if users <= capacity else LATE for users in USERS]


def a_table(*capacities: int, model: str = "a model") -> LatencyTable:
    itl = np.array([latencies(capacity) for capacity in capacities])
    return LatencyTable(model, tuple(f"{i + 1} x GPU" for i in range(len(itl))), USERS, np.zeros_like(itl), itl)


def drawn(*draws: tuple[int, ...]) -> LatencyTable:
    """Return draws of the capacities of each profile."""
    itl = np.array([[latencies(capacity) for capacity in draw] for draw in draws])
    names = tuple(f"{i + 1} x GPU" for i in range(itl.shape[1]))
    return LatencyTable("a model", names, USERS, np.zeros_like(itl), itl)


def decide(draws: LatencyTable, n_user: int, *prices: float) -> tuple[int, int]:
    question = (Demand(1.0, 1.0, n_user),)
    predicted = a_table(*[0] * len(prices))
    choices = expected_utility({"a model": draws})(predicted, question, np.array(prices))
    return int(choices.profile[0]), int(choices.n_pod[0])


@pytest.mark.parametrize(
    ("capacities", "prices"),
    [((8, 8), (1, 2)), ((8, 8), (2, 1)), ((1, 8), (1, 3)), ((4, 8), (1, 2)), ((0, 2), (1, 9)), ((0, 0), (1, 1))],
)
@pytest.mark.parametrize("n_user", [1, 5, 8, 20])
def test_one_draw_is_taken_at_its_word(capacities: tuple[int, ...], prices: tuple[float, ...], n_user: int) -> None:
    wanted = cheapest(a_table(*capacities), (Demand(1.0, 1.0, n_user),), np.array(prices, dtype=float))
    assert decide(drawn(capacities), n_user, *prices) == (int(wanted.profile[0]), int(wanted.n_pod[0]))


def test_a_pod_more_is_bought_if_it_is_needed_often_enough() -> None:
    """Four users: one pod serves them if it holds 4, else two are needed; two cost twice as much.

    One pod is worth 1 in each draw where it is enough. Two pods are worth 2 - 2 / 1 = 0 there, and 1 where both are
    needed. So the more likely case decides.
    """
    assert decide(drawn((4,), (4,), (2,)), 4, 1.0) == (0, 1)
    assert decide(drawn((4,), (2,), (2,)), 4, 1.0) == (0, 2)


def test_a_small_overspend_buys_much_safety() -> None:
    """One pod of the first profile serves eight users in two draws of three, and two are needed in the other.

    The second profile costs a tenth more and always serves them: 0.9 + 0.9 + 1 against 1 + 1 + 0.
    """
    draws = drawn((8, 8), (8, 8), (4, 8))
    assert decide(draws, 8, 1.0, 1.1) == (1, 1)
    assert decide(draws, 8, 1.0, 1.6) == (0, 1), "0.4 + 0.4 + 1 is less than 2"


def test_draws_that_nobody_can_serve_do_not_count() -> None:
    assert decide(drawn((0, 0), (0, 0), (0, 8)), 8, 1.0, 1.0) == (1, 1)
    assert decide(drawn((0, 0), (0, 0)), 8, 1.0, 1.0) == (NO_PROFILE, 0)


def test_each_question_has_its_answer() -> None:
    questions = (Demand(1.0, 1.0, 2), Demand(1.0, 0.5, 2), Demand(1.0, 1.0, 16))
    choices = expected_utility({"a model": drawn((8,), (8,))})(a_table(0), questions, np.array([1.0]))
    assert choices.profile.tolist() == [0, NO_PROFILE, 0]
    assert choices.n_pod.tolist() == [1, 0, 2]


def test_the_draws_of_the_llm_in_question_count() -> None:
    draws = {"a model": drawn((8, 1)), "another": drawn((1, 8))}
    question, prices = (Demand(1.0, 1.0, 8),), np.array([1.0, 1.0])
    chosen = [expected_utility(draws)(a_table(0, 0, model=name), question, prices).profile[0] for name in draws]
    assert chosen == [0, 1]
