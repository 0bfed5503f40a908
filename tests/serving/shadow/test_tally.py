"""Counts of answers by group: what callers name is no group."""

import numpy as np

from roofcast.data.catalog import load_catalog
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.serving.predict.question_rows import columns_from_rows
from roofcast.serving.shadow.tally import OTHER, tally
from roofcast.training.drift.answer_ratios import ANSWERED
from roofcast.training.drift.prediction_scores import METRICS
from tests.serving.http_client import ACCELERATOR, a_question


def answers(*values: float, status: str = "ok") -> dict[str, ColumnArray]:
    columns: dict[str, ColumnArray] = {metric: np.array(values) for metric in METRICS}
    return {**columns, "status": np.array([status] * len(values), dtype=object)}


def test_each_row_counts_in_its_groups() -> None:
    rows = [a_question(engine=" vLLM "), a_question(model="brought-along", engine="of-a-caller")]
    counts = tally(columns_from_rows(rows), answers(1.0, 1.0), answers(1.0, 2.0), load_catalog())
    assert counts["all", "", "ttft_s", 0] == counts["all", "", "ttft_s", 35] == 1
    assert counts["accelerator", ACCELERATOR, ANSWERED, 0] == 2
    assert counts["engine", "vllm", "tpot_s", 0] == counts["engine", OTHER, "tpot_s", 35] == 1
    assert counts["lineage", OTHER, "tpot_s", 35] == 1
    names = {name for _, name, _, _ in counts}
    assert not names & {"brought-along", "of-a-caller"}


def test_answers_of_one_alone_are_counted_and_not_compared() -> None:
    columns = columns_from_rows([a_question()])
    for champion, challenger, bin_ in (("ok", "invalid", -1), ("invalid", "ok", 1)):
        counts = tally(columns, answers(1.0, status=champion), answers(1.0, status=challenger), load_catalog())
        assert {(key[2], key[3]) for key in counts} == {(ANSWERED, bin_)}
    assert not tally(columns, answers(1.0, status="invalid"), answers(1.0, status="invalid"), load_catalog())


def test_a_champion_with_references_is_compared_without_them() -> None:
    champion = answers(5.0) | {"ttft_s_uncalibrated": np.array([1.0])}
    counts = tally(columns_from_rows([a_question()]), champion, answers(1.0), load_catalog())
    assert counts["all", "", "ttft_s", 0] == 1
    assert counts["all", "", "tpot_s", -50] == 1


def test_values_that_have_no_ratio_are_left_out() -> None:
    counts = tally(columns_from_rows([a_question()]), answers(0.0), answers(np.nan), load_catalog())
    assert {key[2] for key in counts} == {ANSWERED}
