import json

import pytest

from tests.serving.http_client import ACCELERATOR, MODEL, Run
from tests.serving.measure.exporter import VLLM_NAMES, Exporter

BRIEF = ("--duration", "1", "--interval", "0.2")
HARDWARE = ("--set", f"accelerator={ACCELERATOR}", "--set", "n_accelerator=1")


@pytest.fixture
def exporter() -> Exporter:
    one = Exporter(VLLM_NAMES, model=MODEL)
    one.n_request_per_scrape = 1
    return one


def test_a_watch_is_imported_with_its_drift(run: Run, home: object, exporter: Exporter) -> None:
    with exporter.running() as url:
        answer = json.loads(run.ok("watch", url, *BRIEF, *HARDWARE, "--json"))[0]
    assert (answer["format"], answer["n_new"], answer["campaign"]) == ("prometheus", 1, ["prometheus"])
    assert answer["row"]["model"] == MODEL
    assert answer["row"]["ttft_s"] == pytest.approx(0.2)
    assert answer["row"]["concurrency"] >= 1
    assert answer["drift"]
    assert set(exporter.methods) == {"GET"}


def test_a_watch_prints_load_and_latencies(run: Run, home: object, exporter: Exporter) -> None:
    with exporter.running() as url:
        text = run.ok("watch", f"{url}/v1", *BRIEF, *HARDWARE, "--dry-run")
    assert "1000 tokens in, 101 out" in text
    assert "TTFT 200 ms, TPOT 10 ms, ITL 10 ms, E2E 1.2 s" in text
    assert "mean queue 50 ms" in text


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ((), "accelerator: is not in the file; set what is missing, such as --set accelerator="),
        (("--set", "accelerator=nvidia-h1000", "--set", "n_accelerator=1"), "no 'nvidia-h1000' is known"),
    ],
)
def test_unknown_cells_are_named_before_the_watch(
    run: Run, home: object, exporter: Exporter, given: tuple[str, ...], problem: str
) -> None:
    with exporter.running() as url:
        status, _, err = run("watch", url, "--duration", "3600", *given)
    assert status == 2
    assert problem in err


def test_a_model_that_is_set_replaces_the_served_name(run: Run, home: object, exporter: Exporter) -> None:
    exporter.model = "production"
    exporter.answers = {"/v1/models": {"data": [{"id": "production"}]}}
    exporter.restart()
    with exporter.running() as url:
        options = (*BRIEF, *HARDWARE, "--set", f"model={MODEL}", "--dry-run", "--json")
        answer = json.loads(run.ok("watch", url, *options))[0]
    assert answer["model"] == [MODEL]
