from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from roofcast.training.dataset.blanked_rows import BlankedRows
from roofcast.training.learner.derived_metrics import THROUGHPUT
from roofcast.training.learner.errors.blank_doubt import OPEN_LOOP, OTHER_LOAD, BlankDoubt, unshared_blanks
from roofcast.training.learner.predictor import CalibrationPoints
from roofcast.training.learner.ratio_model import RatioModel
from tests.builders import a_question, describe_questions


class Doubling(RatioModel):
    """Predicts a TPOT of the length variation, in seconds."""

    def predict(self, X: pd.DataFrame, stacks: pd.Series | None = None) -> pd.DataFrame:  # noqa: ARG002
        """Return the table of TPOT."""
        return pd.DataFrame({"tpot_s": X["workload.length_variation"]}, X.index)


def queries(*loads: str) -> pd.DataFrame:
    """Return descriptors of one query for each load."""
    kinds = ({"request_rate": 2.0, "concurrency": None} if load == OPEN_LOOP else {} for load in loads)
    return describe_questions(*(a_question(**kind) for kind in kinds))


def fitted(stated: tuple[float, ...], share: float = 1.0) -> BlankDoubt:
    """Return the doubt where the usual length variation is 1 and rows state others."""
    X = queries(*[OTHER_LOAD] * len(stated)).assign(**{"workload.length_variation": stated})
    blanked = {"length_variation": BlankedRows(X.assign(**{"workload.length_variation": 1.0}), share)}
    return BlankDoubt.fit(Doubling(), X, blanked)


def test_the_doubt_is_the_mean_square_of_the_change() -> None:
    variance = fitted((np.e, 1.0)).predict(np.array([False]), ["length_variation"])
    assert variance["tpot_s"].tolist() == pytest.approx([0.5])


def test_columns_that_few_rows_state_add_little() -> None:
    assert fitted((np.e,), share=0.1).predict(np.array([False]), ["length_variation"])["tpot_s"] == pytest.approx(0.1)


def test_only_assumed_columns_of_the_kind_of_load_add_doubt() -> None:
    doubt = BlankDoubt({OTHER_LOAD: {"a": {"tpot_s": 0.1}, "b": {"tpot_s": 0.2}}, OPEN_LOOP: {"b": {"ttft_s": 0.4}}})
    variance = doubt.predict(np.array([False, False, True, True]), ["a b c", "", "a b", "a"])
    assert variance["tpot_s"].tolist() == pytest.approx([0.3, 0, 0, 0])
    assert variance["ttft_s"].tolist() == pytest.approx([0, 0, 0.4, 0])


def test_own_runs_on_the_same_hardware_share_what_they_leave_blank() -> None:
    here, elsewhere = (describe_questions(a_question(engine=engine)) for engine in ("vllm", "tgi"))
    assumed = ["graphs n_request"]
    assert unshared_blanks(here, assumed, here, ["n_request"]) == ["graphs"]
    assert unshared_blanks(here, assumed, elsewhere, ["n_request"]) == assumed
    assert unshared_blanks(here, assumed, here, [""]) == assumed


def test_own_runs_show_blanks_only_of_what_they_measured() -> None:
    here = describe_questions(a_question())
    by_metric = dict.fromkeys(("ttft_s", "tpot_s", "itl_s", "e2e_s", THROUGHPUT), 0.1)
    doubt = BlankDoubt({OTHER_LOAD: {"n_request": by_metric}})

    def remaining(**measured: float) -> set[str]:
        runs = CalibrationPoints(here, pd.DataFrame([measured], here.index), assumed=["n_request"])
        variance = doubt.predict_given_runs(np.array([False]), ["n_request"], here, runs)
        return {metric for metric, values in variance.items() if values.any()}

    assert remaining(tpot_s=0.02) == {"ttft_s", "e2e_s", THROUGHPUT}
    assert remaining(ttft_s=0.2) == {"tpot_s", "itl_s", "e2e_s", THROUGHPUT}
    assert remaining(ttft_s=0.2, tpot_s=0.02) == set()
    assert remaining(**{THROUGHPUT: 500.0}) == {"ttft_s", "tpot_s", "itl_s", "e2e_s"}


def test_blanks_do_not_change_the_rate_of_an_open_loop() -> None:
    doubt = BlankDoubt({OPEN_LOOP: {"graphs": {THROUGHPUT: 0.1, "ttft_s": 0.2}}})
    variance = doubt.predict(np.array([True]), ["graphs"])
    assert (variance[THROUGHPUT].tolist(), variance["ttft_s"].tolist()) == ([0.0], [0.2])
