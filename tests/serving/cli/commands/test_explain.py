import json
import shutil
from pathlib import Path

import pytest

from roofcast.serving.cli.console import WIDTH
from tests.serving.http_client import ACCELERATOR, MODEL, Run

QUESTION = ("--model", MODEL, "--accelerator", ACCELERATOR, "--n-input-token", "120", "--n-output-token", "20")


@pytest.fixture
def home_without_champion(empty_home: Path, tmp_path: Path) -> None:
    """Make the state folder of the environment one without a champion."""
    shutil.copytree(empty_home, tmp_path / "home")


@pytest.mark.usefixtures("home_without_champion")
def test_an_explanation_needs_no_champion(run: Run) -> None:
    status, out, err = run("explain", *QUESTION, "--json")
    document = json.loads(out)
    assert status == 0
    assert "no predictor is in service" in err
    assert document["prediction"] is None
    assert document["question"]["accelerator"] == ACCELERATOR


@pytest.mark.usefixtures("home")
def test_an_explanation_has_prediction_and_estimate(run: Run) -> None:
    document = run.json("explain", *QUESTION)
    assert document["prediction"]["ttft_s"]["low"] < document["prediction"]["ttft_s"]["high"]
    out = run.ok("explain", *QUESTION)
    assert "share of the time by bound" in out
    assert "projections and MLP" in out
    assert "greatest concurrency" in out
    assert max(map(len, out.splitlines())) <= WIDTH


@pytest.mark.usefixtures("home_without_champion")
def test_a_scaled_accelerator_is_explained(run: Run, tmp_path: Path) -> None:
    _, unscaled, _ = run("explain", *QUESTION, "--json")
    document = run.json(
        "explain", *QUESTION, "--scale", "bandwidth=2", "--scale", "link=0.5", "--plot", tmp_path / "p.png"
    )
    assert document["accelerator"]["id"] == f"{ACCELERATOR}~bandwidth=2,link=0.5"
    assert document["estimate"]["tpot_s"] < json.loads(unscaled)["estimate"]["tpot_s"]
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("home_without_champion")
def test_a_sweep_has_a_row_for_each_step(run: Run, tmp_path: Path) -> None:
    sweep = ("--sweep", "bandwidth=1,1.5,2,4")
    rows = run.json("whatif", *QUESTION, *sweep, "--plot", tmp_path / "p.svg")
    assert [row["bandwidth"] for row in rows] == ["1", "1.5", "2", "4"]
    times = [row["tpot_s"] for row in rows]
    assert times == sorted(times, reverse=True)
    assert "<svg" in (tmp_path / "p.svg").read_text()
    out = run.ok("whatif", *QUESTION, "--sweep", "node=N7,N5")
    assert "tpot_bound" in out
    assert " ms  " in out
    assert max(map(len, out.splitlines())) <= WIDTH


@pytest.mark.usefixtures("home_without_champion")
@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (("--tp", "3"), "--tp: tp x pp x dp must equal --n-accelerator"),
        (("--scale", "bandwidth=0"), "must be a positive factor"),
        (("--scale", "clock=2"), "must name one of"),
        (("--concurrency", "many"), "concurrency: must be a number"),
        (("--plot", "none/such.png"), "plot: cannot be written"),
    ],
)
def test_an_invalid_question_is_an_error(run: Run, more: tuple[str, ...], reason: str) -> None:
    status, out, err = run("explain", *QUESTION, *more)
    assert status == 2
    assert not out
    assert reason in err


def test_two_sweeps_at_once_are_refused(run: Run) -> None:
    assert "sweep: one at a time" in run.error(
        "whatif", *QUESTION, "--sweep", "bandwidth=1,2", "--sweep", "node=N5,N3"
    )


@pytest.mark.usefixtures("home_without_champion")
def test_a_degree_is_an_option_in_both_spellings(run: Run) -> None:
    short, long = (
        run("explain", *QUESTION, "--n-accelerator", "2", option, "2", "--json")
        for option in ("--tp", "--tensor-parallel")
    )
    assert short == long
    assert short[0] == 0
