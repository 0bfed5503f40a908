"""All problems of the arguments of a command are named at once, and then all of its request."""

from pathlib import Path

import pytest

from roofcast.serving.cli import context
from roofcast.serving.cli.context import load_predictor
from roofcast.serving.composition import Service
from tests.serving.http_client import ACCELERATOR, Run


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        (
            ("recommend", "--modl", "x", "--fo=1", "--users", "many", "--slo"),
            (
                "--modl: no such option; did you mean --model",
                "--fo: no such option; `roofcast recommend --help` lists them",
                "--slo: must have a value",
                "--model: must be given",
                "--users: must be a valid number, got 'many'",
                "give --n-input-token and --n-output-token, or a preset such as chat",
            ),
        ),
        (
            ("measure", "--target", "http://x", "--n-accelerator", "2", "--plot", "y"),
            (
                "--n-accelerator: no such option; did you mean --set n_accelerator=VALUE?",
                "--plot: no such option",
                "--set: must be given: ",
            ),
        ),
        (("recomend", "--isl", "9"), ("recomend: no such command; did you mean recommend",)),
        (
            ("--server", "http://x", "recommend"),
            ("--server: is an option of commands; write it after one, as in `roofcast recommend --server ...`",),
        ),
        (("import", "autoo", "x.csv"), ("format: no 'autoo' is known; did you mean 'auto'?",)),
        (("zzz",), ("zzz: no such command; `roofcast --help` lists them",)),
        (("accelerators", "x", "--colour"), ("--colour: no such option", "unexpected argument 'x'")),
        (
            ("keys", "create", "--nam", "y"),
            ("--nam: no such option", "name: must be given", "--scope: must be given"),
        ),
        (
            ("keys", "create", "y", "--scope", "writ"),
            ("--scope: must be one of read, write, admin, got 'writ'; did you mean write?",),
        ),
        (("offers", "--js_on", "--zzz"), ("--js-on: no such option; did you mean --json", "--zzz: no such option")),
        (("offers", "--nam", "x", "-zq"), ("--nam: no such option", "-z: no such option")),
        (("models", "--json=1", "--zzz"), ("--json: takes no value", "--zzz: no such option")),
    ],
)
def test_every_problem_of_the_arguments_is_named(run: Run, arguments: tuple[str, ...], problems: tuple[str]) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    lines = [line.removeprefix("error: ") for line in err.splitlines()]
    assert len(lines) == len(problems)
    for line, problem in zip(lines, problems, strict=True):
        assert line.startswith(problem)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--users", "3", "--provider", "awz"), "--provider: no 'awz' is known; did you mean 'aws'"),
        (("--users", "0"), "--users: input should be greater than or equal to 1"),
        (
            ("--rate", "1", "--think-time", "3"),
            "--think-time-s needs --users; requests in flight and arrivals at a rate do not think",
        ),
        (("--users", "3", "--draft-model", "x"), "--draft-model needs speculation; name a kind such as eagle"),
    ],
)
def test_problems_of_a_request_name_the_options(run: Run, arguments: tuple[str, ...], problem: str) -> None:
    _, _, err = run("recommend", "--model", "llama-3.1-8b", "--preset", "chat", "--limit", "ttft<=1s", *arguments)
    assert err.removeprefix("error: ").startswith(problem)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "guess"),
    [
        (
            ("training", "recommend", "--tokens", "1m", "--method", "lor"),
            "--method: {}'lor'; did you mean lora or qlora?",
        ),
        (
            ("recommend", "--users", "3", "--preset", "chat", "--slo", "ttft<=1s", "--speculation", "egle"),
            "--speculation number 1: {}'egle'; did you mean eagle?",
        ),
    ],
)
def test_a_misspelt_choice_has_near_misses(run: Run, arguments: tuple[str, ...], guess: str) -> None:
    place, end = guess.split("{}")
    _, _, err = run(*arguments, "--model", "llama-3.1-8b")
    assert any(line.startswith(f"error: {place}must be one of ") and line.endswith(end) for line in err.splitlines())


LIMIT = ("--slo", "ttft<=1s")
JOB = ("--model", "no-such", "--accelerator", "h1")
ELSEWHERE = ("--model", "org/my-own", "--accelerator", ACCELERATOR, "--tp", "7", "--n-accelerator", "7")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        (
            ("recommend", *JOB, "--isl", "x", "--users", "2", "--slo", "tpo<=1s", "--top", "0", "--fo"),
            ["--fo", "--n-input-token", "--n-entry", "--model", "--limit, metric", "--accelerator"],
        ),
        (
            ("recommend", *JOB, "--preset", "chat", "--users", "2", *LIMIT, "--inventory", "x", "--inventory", "y"),
            ["--inventory", "--inventory", "--model", "--accelerator"],
        ),
        (
            ("recommend", *JOB, "--isl", "-3", "--slo", "tpo<=1s", "--confidence", "2", "--pricing", "spott"),
            ["--n-input-token", "--confidence", "--model", "--limit, metric", "--accelerator", "--pricing",
             "give --n-input-token and --n-output-token, or a preset such as chat"],
        ),
        (
            ("predict", "--rows", "no.csv", "--out", "no/out.csv", "--reference", "none.csv", "--level", "2"),
            ["no.csv", "--out", "none.csv", "--level"],
        ),
        (("predict", "--rows", "no.csv", "--out", "out.csv", "--level", "x"), ["--level", "no.csv"]),
        (
            ("explain", *JOB, "--isl", "0", "--osl", "9", "--scale", "x", "--scale", "y=2", "--level", "1", "--fo"),
            ["--fo", "--n-input-token", "--model", "--accelerator", "--scale", "--scale", "--level"],
        ),
        (
            ("whatif", *JOB, "--isl", "9", "--osl", "9", "--engine", "vlm", "--sweep", "y=2"),
            ["--model", "--accelerator", "--engine", "--sweep"],
        ),

        (
            ("training", "predict", *JOB, "--tp", "x", "--n-node", "9", "--level", "2", "--out", "no/out.csv"),
            ["--out", "--tp", "--model", "--accelerator", "--n-node", "--level"],
        ),
        (
            ("training", "recommend", *JOB, "--tokens", "x", "--method", "lor", "--launch", "slurm", "--fo"),
            ["--fo", "--n-token", "--launch", "--method", "--model", "--accelerator"],
        ),

        (
            ("training", "predict", "--rows", "no.csv", "--out", "no/out.csv", "--level", "2"),
            ["no.csv", "--out", "--level"],
        ),
        (("explain", *ELSEWHERE, "--isl", "500000", "--osl", "10", "--fo"), ["--fo"]),
        (
            ("explain", *ELSEWHERE, "--isl", "500000", "--osl", "10", "--engine", "vlm", "--level", "2"),
            ["--engine", "--level"],
        ),

        (("training", "predict", *ELSEWHERE, "--n-node", "9", "--level", "2"), ["--n-node", "--level"]),
        (
            ("training", "predict", "--model", "", "--accelerator", ACCELERATOR, "--level", "2"),
            ["--model", "--level"],
        ),
    ],
)  # fmt: skip
def test_options_and_values_are_reported_together(run: Run, arguments: tuple[str, ...], fields: list[str]) -> None:
    """No other model stands for one that is elsewhere: what depends on its shape is not checked."""
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert [line.removeprefix("error: ").partition(": ")[0] for line in err.splitlines()] == fields


@pytest.mark.usefixtures("home")
def test_an_error_is_reported_even_if_a_check_after_it_fails(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("roofcast.serving.cli.arguments.request_check.check_row", fail)
    caplog.set_level("DEBUG", "roofcast.serving.cli.arguments.request_check")
    status, _, err = run("explain", *ELSEWHERE, "--isl", "9", "--osl", "9", "--scale", "x", "--fo")
    assert status == 2
    assert [line.removeprefix("error: ").partition(": ")[0] for line in err.splitlines()] == ["--fo", "--scale"]
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.usefixtures("home")
def test_checks_of_a_command_share_one_predictor(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Service] = []

    def load(service: Service) -> Service:
        loads.append(service)
        return load_predictor(service)

    monkeypatch.setattr(context, "load_predictor", load)
    references = tmp_path / "references.csv"
    references.write_text("model,accelerator,n_input_token,n_output_token,ttft_s\nno-such,h100,9,9,1\n")
    question = ("--model", "llama-3.1-8b", "--accelerator", ACCELERATOR, "--isl", "9", "--osl", "9")
    status, _, err = run("explain", *question, "--reference", references, "--stack", "no-such", "--fo")
    assert status == 2
    assert [line.removeprefix("error: ").partition(":")[0] for line in err.splitlines()][-1] == "--stack"
    assert "references.csv" in err
    assert len(loads) == 1


@pytest.mark.usefixtures("home")
def test_an_error_that_no_check_finds_stands_alone(run: Run) -> None:
    demand = ("--preset", "chat", "--users", "2", *LIMIT, "--provider", "aws", "--max-usd-per-h", "0.0001")
    status, _, err = run("recommend", "--model", "llama-3.1-8b", *demand, "--region", "asia-east1")
    assert status != 0
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("group", [(), ("stacks",), ("training",), ("keys",)])
def test_a_group_without_a_command_prints_its_help(run: Run, group: tuple[str, ...]) -> None:
    status, out, err = run(*group)
    assert (status, err) == (2, "")
    assert f"Usage: {' '.join(('roofcast', *group))} [OPTIONS] COMMAND" in out
