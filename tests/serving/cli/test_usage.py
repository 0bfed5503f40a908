"""All problems of the arguments of a command are named at once, and then all of its request."""

from __future__ import annotations

import pytest

from tests.serving.http_client import Run


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        (
            ("recommend", "--modl", "x", "--fo=1", "--users", "many", "--slo"),
            ("no such option: --modl", "no such option: --fo", "option '--slo' requires", "'--users'", "'--model'"),
        ),
        (("models", "x", "--colour"), ("no such option: --colour", "unexpected argument 'x'")),
        (("keys", "create", "--nam", "y"), ("no such option: --nam", "missing argument 'name'", "'--scope'")),
        (("offers", "--nam"), ("No such option: --nam",)),
    ],
)
def test_every_problem_of_the_arguments_is_named(run: Run, arguments: tuple[str, ...], problems: tuple[str]) -> None:
    status, out, err = run(*arguments)
    text = " ".join(err.replace("│", " ").split())
    assert (status, out) == (2, "")
    for problem in problems:
        assert problem in text


@pytest.mark.usefixtures("home")
def test_every_problem_of_a_request_is_named_in_a_line_of_its_own(run: Run) -> None:
    wrong = ("--model", "no-such", "--isl", "-3", "--slo", "tpo<=1s", "--accelerator", "h1", "--confidence", "2")
    status, _, err = run("recommend", *wrong, "--pricing", "spott")
    assert status == 2
    fields = [line.removeprefix("error: ").partition(":")[0] for line in err.splitlines()]
    assert fields == [
        "concurrency", "workload.n_input_token", "confidence", "model", "limits.metric", "accelerator",
        "constraints.pricing", "workload",
    ]  # fmt: skip


@pytest.mark.usefixtures("home")
def test_every_problem_of_a_training_request_is_named(run: Run) -> None:
    wrong = ("--model", "no-such", "--tokens", "1m", "--method", "lor", "--provider", "amzon")
    status, _, err = run("training", "recommend", *wrong)
    assert status == 2
    fields = [line.removeprefix("error: ").partition(":")[0] for line in err.splitlines()]
    assert fields == ["method", "model", "constraints.providers"]
