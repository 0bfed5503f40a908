"""Commands that ask a running service give the output of those that predict by themselves."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.app import create_app
from roofcast.training.lifecycle.shipped import shipped_predictor
from tests.serving.http_client import ACCELERATOR, CONFIG, MODEL, Run
from tests.serving.own_things import put

QUESTION = ("--model", MODEL, "--accelerator", ACCELERATOR, "--n-input-token", "120", "--n-output-token", "20")
DEMAND = ("--isl", "120", "--osl", "20", "--users", "20", "--slo", "itl:p50<=50ms")
HEADER = "model,accelerator,n_input_token,n_output_token,concurrency"
REFERENCE = f"{HEADER},tpot_s\n{MODEL},{ACCELERATOR},120,20,1,0.02\n"


@pytest.fixture(scope="module", autouse=True)
def with_shipped_predictor() -> Iterator[None]:
    """Let service and commands use the shipped predictor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roofcast.serving.app_state.app_state.shipped_predictor", shipped_predictor)
        yield


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a running service with the shipped predictor."""
    home = tmp_path_factory.mktemp("service")
    server = uvicorn.Server(uvicorn.Config(create_app(Settings(home=home, poll_s=3600)), port=0, log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("with_reference", [False, True])
def test_predictions_are_those_of_the_command(run: Run, url: str, tmp_path: Path, *, with_reference: bool) -> None:
    rows = put(tmp_path, "in.csv", f"{HEADER}\n{MODEL},{ACCELERATOR},120,20,16\nno/such,{ACCELERATOR},9,9,1\n")
    more = ("--reference", put(tmp_path, "reference.csv", REFERENCE)) if with_reference else ()
    outputs = []
    for server in ((), ("--server", url)):
        status, out, err = run("predict", "--rows", rows, "--out", tmp_path / "out.csv", *more, *server, "--json")
        assert status == 0, err
        outputs.append((json.loads(out), (tmp_path / "out.csv").read_text()))
    assert outputs[0] == outputs[1]


def test_a_recommendation_is_that_of_the_command(run: Run, url: str, tmp_path: Path) -> None:
    config = put(tmp_path, "my-14b/config.json", json.dumps(CONFIG))
    for model in (MODEL, config):
        local, remote = (run("recommend", "--model", model, *DEMAND, *more) for more in ((), ("--server", url)))
        assert local[0] == 0, local[2]
        assert local == remote


def test_an_explanation_is_that_of_the_command(run: Run, url: str) -> None:
    local, remote = (run("explain", *QUESTION, *more, "--json") for more in ((), ("--server", url)))
    assert local[0] == 0, local[2]
    assert json.loads(local[1]) == json.loads(remote[1])


@pytest.mark.parametrize(
    ("server", "more", "status", "problem"),
    [
        ("http://127.0.0.1:9", (), 1, "does not answer"),
        ("http://a:b", (), 2, "server: must be a URL"),
        ("", ("--model", "no/such"), 2, "error: model: no 'no/such' is known"),
        ("", ("--scale", "bandwidth=2"), 2, "server: cannot be combined with --scale or --plot"),
    ],
)
def test_errors_of_a_service_are_one_line(
    run: Run, url: str, *, server: str, more: tuple[str, ...], status: int, problem: str
) -> None:
    ended, out, err = run("explain", *QUESTION, *more, "--server", server or url)
    assert (ended, out) == (status, "")
    assert problem in " ".join(err.split())
    assert "Traceback" not in err
