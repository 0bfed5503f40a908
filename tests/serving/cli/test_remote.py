"""Commands with ``--server`` print the same as those that load the predictor."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from roofcast.client import bulk
from roofcast.data.catalog import load_catalog
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.cli.remote import KEY_VARIABLE
from roofcast.serving.http.app import create_app
from roofcast.training.lifecycle.shipped import shipped_predictor
from tests.serving.http_client import ACCELERATOR, CONFIG, MODEL, Run
from tests.serving.user_files import write_file

QUESTION = ("--model", MODEL, "--accelerator", ACCELERATOR, "--n-input-token", "120", "--n-output-token", "20")
DEMAND = ("--isl", "120", "--osl", "20", "--users", "20", "--slo", "itl:p50<=50ms")
HEADER = "model,accelerator,n_input_token,n_output_token,concurrency"
REFERENCE = f"{HEADER},tpot_s\n{MODEL},{ACCELERATOR},120,20,1,0.02\n"


@pytest.fixture(scope="module", autouse=True)
def with_shipped_predictor() -> Iterator[None]:
    """Let service and commands use the shipped predictor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roofcast.serving.composition.shipped_predictor", shipped_predictor)
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


def run_both(run: Run, url: str, *arguments: str | Path) -> tuple[int, str, str]:
    """Return what a command prints, the same without and with a service."""
    local, remote = (run(*arguments, *more) for more in ((), ("--server", url)))
    assert local == remote
    return local


@pytest.mark.parametrize("with_reference", [pytest.param(False, marks=pytest.mark.slow), True])
def test_predict_prints_the_same_with_and_without_a_service(
    run: Run, url: str, tmp_path: Path, *, with_reference: bool
) -> None:
    rows = write_file(tmp_path, "in.csv", f"{HEADER}\n{MODEL},{ACCELERATOR},120,20,16\nno/such,{ACCELERATOR},9,9,1\n")
    more = ("--reference", write_file(tmp_path, "reference.csv", REFERENCE)) if with_reference else ()
    outputs = []
    for server in ((), ("--server", url)):
        out = run.ok("predict", "--rows", rows, "--out", tmp_path / "out.csv", *more, *server, "--json")
        outputs.append((json.loads(out), (tmp_path / "out.csv").read_text()))
    assert outputs[0] == outputs[1]


def test_recommend_prints_the_same_with_and_without_a_service(run: Run, url: str, tmp_path: Path) -> None:
    config = write_file(tmp_path, "my-14b/config.json", json.dumps(CONFIG))
    for model in (MODEL, config):
        status, _, err = run_both(run, url, "recommend", "--model", model, *DEMAND)
        assert status == 0, err


def test_a_folder_is_read_with_and_without_a_service_unless_its_name_is_known(
    run: Run, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("my-moe", "llama-3.1-8b"):
        write_file(tmp_path, f"{name}/config.json", json.dumps(CONFIG))
        _, out, err = run_both(run, url, "predict", "--model", name, *QUESTION[2:])
        assert out.startswith(f"{name} on 1 x "), err
        assert ("write ./llama-3.1-8b" in err) == (name == "llama-3.1-8b")
    _, out, err = run_both(run, url, "recommend", "--model", "my-moe", *DEMAND)
    assert out.startswith("my-moe: "), err


def test_explain_prints_the_same_with_and_without_a_service(run: Run, url: str) -> None:
    local, remote = (run.json("explain", *QUESTION, *more) for more in ((), ("--server", url)))
    assert local == remote


@pytest.mark.parametrize(
    ("server", "more", "status", "problem"),
    [
        ("http://127.0.0.1:9", (), 1, "does not answer"),
        ("http://a:b", (), 2, "server: must be a URL such as http://127.0.0.1:8000, got 'http://a:b'"),
        ("localhost:8000", (), 2, "server: must be a URL such as http://127.0.0.1:8000, got 'localhost:8000'"),
        ("ftp://127.0.0.1", (), 2, "server: must be a URL"),
        ("", ("--model", "no/such"), 2, "error: --model: no 'no/such' is known"),
        ("", ("--scale", "bandwidth=2"), 2, "server: cannot be combined with --scale or --plot"),
    ],
)
def test_errors_of_a_service_are_one_line_on_standard_error(
    run: Run, url: str, *, server: str, more: tuple[str, ...], status: int, problem: str
) -> None:
    assert problem in run.error("explain", *QUESTION, *more, "--server", server or url, status=status)


def test_problems_of_a_request_to_a_service_are_named_at_once_a_line_each(run: Run, url: str) -> None:
    demand = ("--preset", "chat", "--users", "2", "--slo", "tftt<=1s", "--slo", "ttft<=1us", "--provider", "awz")
    request = ("recommend", "--model", MODEL, *demand, "--server", url)
    outputs = [run(*request, *more) for more in ((), ("--fo",))]
    assert [(status, out) for status, out, _ in outputs] == [(2, "")] * 2
    complete, with_option = (err.splitlines() for _, _, err in outputs)
    assert len(complete) == 3
    for text, line in zip(("no 'tftt' is known", "got 'ttft<=1us'", "no 'awz' is known"), complete, strict=True):
        assert text in line
    assert with_option == ["error: --fo: no such option; `roofcast recommend --help` lists them", *complete]


def test_values_of_a_question_to_a_service_are_checked_beside_a_misspelt_option(run: Run, url: str) -> None:
    _, _, err = run("explain", *QUESTION, "--tp", "x", "--engine", "of-the-service", "--fo", "--server", url)
    assert [line.split(": ")[1] for line in err.splitlines()] == ["--fo", "--tp"]


@pytest.mark.parametrize("key", ["clé", "two words", "line\nbreak"])
def test_a_malformed_api_key_is_an_error(run: Run, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv(KEY_VARIABLE, key)
    err = run.error("explain", *QUESTION, "--server", "http://127.0.0.1:9")
    assert err.startswith(f"error: {KEY_VARIABLE}: must be an API key")
    assert key not in err


def test_an_empty_api_key_is_not_sent(run: Run, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "")
    run.ok("explain", *QUESTION, "--server", url)


@pytest.fixture(scope="module")
def unpriced() -> str:
    """Return an accelerator of the catalogue that no offer has."""
    catalog = load_catalog()
    return min(catalog.accelerators.keys() - {offer.accelerator for offer in catalog.offers})


@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        ((), 2, "error: --accelerator: {0}: no price is known; add one with"),
        (("--accelerator", ACCELERATOR), 0, "warning: {0} is left out: no price is known"),
        (("--inventory", "{0}=8,8,1"), 0, ""),
    ],
    ids=["alone", "beside another", "owned"],
)
def test_an_accelerator_without_a_price_has_the_same_message(
    run: Run, url: str, unpriced: str, *, more: tuple[str, ...], status: int, message: str
) -> None:
    asked = ("--accelerator", unpriced, *(part.format(unpriced) for part in more))
    returned, _, err = run_both(run, url, "recommend", "--model", MODEL, *DEMAND, *asked)
    assert returned == status
    assert message.format(unpriced) in err
    assert ("no price is known" in err) == bool(message)


def test_rows_over_one_bulk_request_are_sent_in_parts(
    run: Run, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MAX_JSON_ROW", 2)
    monkeypatch.setattr(bulk, "MAX_BULK_ROW", 3)
    lines = [f"{MODEL},{ACCELERATOR},120,20,{n}" for n in range(1, 7)] + [f"no/such,{ACCELERATOR},9,9,1"]
    rows = write_file(tmp_path, "in.csv", "\n".join([HEADER, *lines, ""]))
    outputs = []
    for server in ((), ("--server", url)):
        run.ok("predict", "--rows", rows, "--out", tmp_path / "out.csv", *server)
        outputs.append((tmp_path / "out.csv").read_text())
    assert outputs[0] == outputs[1]
