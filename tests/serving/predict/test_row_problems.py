"""All problems of a row are reported, without those that follow from another."""

import numpy as np

from roofcast.data.catalog import load_catalog
from roofcast.serving.predict.question_rows import Problem, add_problem
from roofcast.serving.predict.row_checks import check_rows
from tests.serving.http_client import a_question


def problem_of_row(**changes: object) -> Problem | None:
    row = a_question(engine="vllm") | changes
    columns = {name: np.array([cell], dtype=object) for name, cell in row.items()}
    return check_rows(columns, load_catalog(), {"vllm"})[1][0]


def test_a_row_has_all_its_problems() -> None:
    problem = problem_of_row(model="llama-3.1-8x", n_output_token=-1, tp=3, engine="vlm")

    assert problem is not None
    assert problem.fields == ("n_output_token", "tp", "model", "engine")
    assert problem.status == "invalid"
    assert str(problem).count("; ") >= 3
    assert problem.error("run.csv", 7).message.startswith("run.csv, line 7: n_output_token: must be a number")
    assert "; tp: tp x pp x dp must equal n_accelerator" in str(problem.error("run.csv", 7))


def test_a_problem_that_follows_from_another_is_not_reported() -> None:
    problem = problem_of_row(n_accelerator="two", concurrency="many", model="")

    assert problem is not None
    assert problem.fields == ("model", "n_accelerator", "concurrency")


def test_a_long_list_of_problems_is_cut_and_counted() -> None:
    problems: list[Problem | None] = [None]
    for n in range(12):
        add_problem(problems, 0, Problem("invalid", f"column_{n}", "is wrong"))

    assert str(problems[0]).endswith("column_9: is wrong; and 2 more problems")
