"""A benchmark client's file is imported over HTTP as on the command line."""

import gzip
from collections.abc import Iterator
from typing import Any

import pytest

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.app import create_app
from tests.data.row_builders import SAMPLES
from tests.serving.http_client import Client, problem_of, running

PATH = "/v1/measurements/files"
GUIDELLM = SAMPLES / "guidellm"
ABOUT = "set=model=meta-llama/Llama-3.1-8B-Instruct&set=accelerator=nvidia-h100-sxm-80gb&set=n_accelerator=1"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with running(create_app(Settings(home=tmp_path_factory.mktemp("home")))) as client:
        yield client


def upload(client: Client, content: bytes, query: str = ABOUT, kind: str = "application/json") -> Any:
    return client.send("POST", f"{PATH}?{query}", content, {"content-type": kind})


def test_a_file_is_imported_in_its_own_format(service: Client) -> None:
    content = (GUIDELLM / "rate.json").read_bytes()

    counted = upload(service, content, f"{ABOUT}&dry_run=true").json()
    stored = upload(service, content, f"{ABOUT}&campaign=nightly").json()

    assert (counted["format"], counted["is_kept"], counted["n_new"]) == ("guidellm", False, counted["n_row"])
    assert stored["is_kept"]
    assert (counted["drift_url"], stored["drift_url"]) == (None, f"/v1/drift?import_id={stored['import_id']}")
    assert stored["n_new"] == stored["n_row"] == counted["n_row"] > 0
    assert {row["campaign"] for row in service.get("/v1/measurements").json()} == {"nightly"}
    again = upload(service, content, f"{ABOUT}&campaign=nightly").json()
    assert (again["n_known"], again["drift_url"]) == (stored["n_row"], None)


def test_failed_runs_are_counted(service: Client) -> None:
    added = upload(service, (GUIDELLM / "all_failed.json").read_bytes(), f"{ABOUT}&dry_run=1").json()

    assert added["n_failed_run"] == added["n_row"] > 0
    assert any("failed run" in warning for warning in added["warnings"])


@pytest.mark.parametrize(
    ("content", "query", "kind", "status", "problem"),
    [
        (b"{}", ABOUT, "multipart/form-data; boundary=x", 415, "send the file as application/json"),
        (b"{}", ABOUT, "text/plain", 415, "send the file as"),
        (b'{"a": [1,', ABOUT, "application/json", 422, "upload.json"),
        (b"{}", ABOUT, "application/json", 422, "is in none of the known formats"),
        (b"", ABOUT, "application/json", 422, "is empty"),
        (b"{}", "format=guidelm", "application/json", 404, "did you mean 'guidellm'"),
        (b"{}", "name=../../x.json", "application/json", 422, "name"),
        (b"{}", "set=engine", "application/json", 422, "must be COLUMN=VALUE"),
        (gzip.compress(b"{}", mtime=0), ABOUT, "application/octet-stream", 422, "is compressed"),
        ((GUIDELLM / "rate.json").read_bytes(), "", "application/json", 422, "accelerator"),
    ],
)
def test_what_cannot_be_imported_is_refused(  # noqa: PLR0917  (a case)
    service: Client, content: bytes, query: str, kind: str, status: int, problem: str
) -> None:
    response = upload(service, content, query, kind)

    assert problem in problem_of(response, status)["detail"]


def test_unknown_names_of_a_file_have_their_lines(service: Client) -> None:
    header = "model,accelerator,n_accelerator,n_input_token,n_output_token,concurrency,statistic,ttft_s"
    lines = [header, "llama-3.1-8x,h100-sxm-80gb,1,9,9,1,p50,fast", "llama-3.1-8b,h100-sxm-81gb,1,9,9,1,p50,0.1"]
    problem = problem_of(upload(service, "\n".join(lines).encode(), "name=a.csv", "text/csv"), 422)
    assert [text.partition(" is known")[0] for text in problem["problems"]] == [
        "a.csv, line 2: ttft_s: must be a number, got 'fast'",
        "a.csv, line 2: model: no 'llama-3.1-8x'",
        "a.csv, line 3: accelerator: no 'h100-sxm-81gb'",
    ]
    bad = ABOUT.replace("h100", "h10")
    problem = problem_of(upload(service, (GUIDELLM / "rate.json").read_bytes(), bad), 422)
    assert problem["detail"].startswith("upload.json: accelerator: no 'nvidia-h10-sxm-80gb' is known; did you mean")
