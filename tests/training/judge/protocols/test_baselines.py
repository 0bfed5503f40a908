import numpy as np
import pandas as pd
import pytest

from judge.protocols.baselines import analytic_estimate, boosted_raw, nearest_measured
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from tests.builders import a_question, describe_questions

NAN = float("nan")
COLUMNS = ("ttft_s", "tpot_s")


@pytest.fixture(scope="module")
def asked() -> pd.DataFrame:
    return describe_questions(*(a_question(concurrency=n) for n in (1, 8, 64)))


def test_the_nearest_row_that_states_a_metric_answers(asked: pd.DataFrame) -> None:
    measured = pd.DataFrame({"ttft_s": [1.0, 2.0, 3.0], "tpot_s": [0.1, NAN, 0.3]})
    answer = nearest_measured(asked, measured, asked.iloc[[1]], COLUMNS)
    assert answer["ttft_s"].tolist() == [2.0]
    assert answer["tpot_s"].item() in {0.1, 0.3}


def test_a_metric_that_nobody_stated_has_no_answer(asked: pd.DataFrame) -> None:
    measured = pd.DataFrame({"ttft_s": [1.0, 2.0, 3.0], "tpot_s": NAN})
    for method in (nearest_measured, boosted_raw):
        answer = method(asked, measured, asked, COLUMNS)
        assert answer["tpot_s"].isna().all()
        assert (answer["ttft_s"] > 0).all()


def test_what_is_without_limit_upsets_neither(asked: pd.DataFrame) -> None:
    unlimited = asked.assign(**{"model.max_context_token": np.inf})
    measured = pd.DataFrame({"ttft_s": [1.0, 2.0, 3.0], "tpot_s": [0.1, 0.2, 0.3]})
    for method in (nearest_measured, boosted_raw):
        assert (method(unlimited, measured, unlimited, COLUMNS) > 0).all(axis=None)


def test_a_rate_beyond_the_estimate_has_no_answer() -> None:
    rates = [a_question(concurrency=NAN, request_rate=rate) for rate in (0.1, 1e6)]
    table = analytic_estimate(describe_questions(*rates), DEFAULT_COEFFICIENTS, COLUMNS)
    assert table["ttft_s"].notna().tolist() == [True, False]
