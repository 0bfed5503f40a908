import numpy as np
import pytest

from judge.protocols.llm_pilot.capacity import (
    NO_PROFILE,
    Choices,
    Demand,
    LatencyTable,
    cheapest,
    evaluate_choices,
    pods_for,
    users_within,
)

USERS = np.array([1, 2, 4, 8])
NAN = float("nan")


def a_table(itl_s: list[list[float]], nttft_s_per_token: list[list[float]] | None = None) -> LatencyTable:
    itl = np.array(itl_s)
    nttft = np.zeros_like(itl) if nttft_s_per_token is None else np.array(nttft_s_per_token)
    return LatencyTable("a model", tuple(f"{i + 1} x GPU" for i in range(len(itl))), USERS, nttft, itl)


@pytest.mark.parametrize(
    ("latency_s", "expected"),
    [
        ([1.0, 1.0, 1.0, 1.0], 8),
        ([1.0, 2.0, 2.1, 2.2], 2),
        ([1.0, 3.0, 1.0, 1.0], 1),
        ([3.0, 1.0, 1.0, 1.0], 0),
        ([1.0, NAN, 1.0, 1.0], 1),
        ([-1.0, 0.0, 9.0, 9.0], 2),
    ],
    ids=["all", "equal meets", "ends at the first breach", "none", "NaN ends it", "negative meets"],
)
def test_users_are_walked_upward_until_the_limit_is_passed(latency_s: list[float], expected: int) -> None:
    assert users_within(np.array(latency_s), 2.0, USERS) == expected


def test_the_stricter_limit_decides() -> None:
    table = a_table([[1.0, 1.0, 1.0, 9.0]], [[0.1, 0.2, 0.9, 0.9]])
    assert table.capacities((Demand(0.2, 1.0, 1), Demand(1.0, 1.0, 1))).tolist() == [[2], [4]]


def test_capacities_keep_leading_axes_for_draws() -> None:
    draws = np.ones((5, 3, 4))
    table = LatencyTable("a model", ("a", "b", "c"), USERS, draws, draws)
    assert table.capacities((Demand(1.0, 1.0, 1), Demand(0.5, 1.0, 1))).shape == (5, 2, 3)


def test_pods_are_whole() -> None:
    assert pods_for(200, np.array([0, 64, 200, 201])).tolist() == [np.inf, 4.0, 1.0, 1.0]


def test_the_first_of_equally_cheap_profiles_is_chosen() -> None:
    table = a_table([[1.0, 1.0, 1.0, 9.0], [1.0] * 4])
    choices = cheapest(table, (Demand(1.0, 1.0, 8),), np.array([1.0, 2.0]))
    assert (choices.profile.tolist(), choices.n_pod.tolist()) == ([0], [2])


def test_no_profile_is_chosen_where_none_is_predicted_to_do() -> None:
    table = a_table([[9.0] * 4])
    choices = cheapest(table, (Demand(1.0, 1.0, 8),), np.array([1.0]))
    assert (choices.profile.tolist(), choices.n_pod.tolist()) == ([NO_PROFILE], [0])


def test_judging_pays_for_the_pods_chosen_and_compares_with_hindsight() -> None:
    measured = a_table([[1.0, 1.0, 9.0, 9.0], [1.0] * 4, [9.0] * 4])
    questions = (Demand(1.0, 1.0, 8),) * 4
    choices = Choices(profile=np.array([0, 1, 2, NO_PROFILE]), n_pod=np.array([3, 2, 1, 0]))
    verdicts = evaluate_choices(choices, measured, questions, np.array([1.0, 3.0, 1.0]))
    assert verdicts.is_success.tolist() == [False, True, False, False]
    assert verdicts.cost_usd_per_h[:3].tolist() == [3.0, 6.0, 1.0]
    assert np.isnan(verdicts.cost_usd_per_h[3])
    assert verdicts.least_cost_usd_per_h.tolist() == [3.0] * 4
    assert verdicts.measured_users.tolist() == [2, 8, 0, 0]


def test_a_question_that_nothing_meets_cannot_be_answered() -> None:
    question = (Demand(1.0, 0.5, 8),)
    choices = Choices(profile=np.array([0]), n_pod=np.array([1]))
    verdicts = evaluate_choices(choices, a_table([[1.0] * 4]), question, np.array([1.0]))
    assert (verdicts.can_answer.tolist(), verdicts.is_success.tolist()) == ([False], [False])
