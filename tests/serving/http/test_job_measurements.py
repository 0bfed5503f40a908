"""``/v1/training/measurements``, and the target of retrainings and versions."""

from collections.abc import Iterator
from typing import Any

import pytest

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import Service
from roofcast.serving.http.app import create_app
from tests.data.importers.job_logs.test_job_logs import TORCHTITAN
from tests.data.row_builders import a_training_row
from tests.serving.http_client import Client, problem_of, running
from tests.serving.jobs.builders import an_estimate_model

RUNS = "/v1/training/measurements"


@pytest.fixture(scope="module")
def service_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Service, "job_model", an_estimate_model())
        with running(create_app(Settings(home=tmp_path_factory.mktemp("home"), poll_s=3600))) as client:
            yield client


def post(client: Client, *rows: dict[str, Any]) -> dict[str, Any]:
    return dict(client.answer(RUNS, {"rows": list(rows)}, status=201))


def test_runs_are_stored_listed_and_withdrawn(service_client: Client) -> None:
    row = a_training_row(campaign="nightly")
    added = post(service_client, row)
    assert (added["n_new"], post(service_client, row)["n_known"]) == (1, 1)
    assert added["errors"]["groups"][0]["n_row"] == 1
    (listed,) = service_client.get(f"{RUNS}?campaign=nightly").json()
    assert (listed["throughput_token_per_s"], listed["state"]) == (60_000, "accepted")
    imports = service_client.get("/v1/measurements/imports").json()
    assert {"target": "training", "n_row": 1}.items() <= imports[0].items()
    selection = {"import_id": added["import_id"], "target": "training"}
    assert service_client.post("/v1/measurements/withdrawals", selection).json()["n_row"] == 1
    (listed,) = service_client.get(f"{RUNS}?campaign=nightly").json()
    assert listed["state"] == "withdrawn"


def test_versions_are_those_of_a_target(service_client: Client) -> None:
    (shipped,) = service_client.get("/v1/predictor/versions?target=training").json()
    assert shipped["version"].startswith("shipped-")
    assert shipped not in service_client.get("/v1/predictor/versions").json()
    assert service_client.get("/v1/predictor/versions?target=neither").status_code == 422


def test_a_retraining_names_its_target(service_client: Client) -> None:
    queued = [service_client.post("/v1/retrainings", body).json() for body in ({"target": "training"}, {})]
    assert [record["target"] for record in queued] == ["training", "inference"]
    again = service_client.post("/v1/retrainings", {"target": "training"}).json()
    assert again["id"] == queued[0]["id"]


def csv_of(n: int, **changes: Any) -> str:
    row = a_training_row(campaign="file", **changes)
    return "\n".join([",".join(row), *[",".join(map(str, row.values()))] * n, ""])


def post_file(client: Client, text: str) -> Any:
    return client.send("POST", f"{RUNS}/files?dry_run=true", content=text, headers={"content-type": "text/csv"})


def test_a_file_is_read_as_the_command_line_reads_it(service_client: Client) -> None:
    assert post_file(service_client, csv_of(1) + "\n\n").json()["n_new"] == 1
    assert problem_of(post_file(service_client, "\n\n" + csv_of(1) + "a,b\n"), 422)["detail"].startswith(
        "upload, line 5"
    )


def test_a_log_is_one_measured_job(service_client: Client) -> None:
    path, headers = f"{RUNS}/files?name=run.log&campaign=logs", {"content-type": "application/octet-stream"}
    about = "&set=model=llama-3.1-8b&set=accelerator=nvidia-h100-sxm-80gb"
    added = service_client.send("POST", path + about, content=TORCHTITAN, headers=headers).json()
    assert (added["n_new"], added["is_kept"]) == (1, True)
    (listed,) = service_client.get(f"{RUNS}?campaign=logs").json()
    assert (listed["framework"], listed["throughput_token_per_s"]) == ("torchtitan", 6100.0 * 8)
    other = service_client.send("POST", f"{path}&set=model=llama-3.1-70b", content=TORCHTITAN, headers=headers)
    assert "whose hidden_size is 8192; the log says 4096" in problem_of(other, 422)["detail"]
    form = service_client.send("POST", path + about, content=TORCHTITAN, headers={"content-type": "text/plain"})
    assert "a log as application/octet-stream" in problem_of(form, 415)["detail"]


def test_a_file_of_too_many_rows_is_refused_with_the_cure(service_client: Client) -> None:
    problem = problem_of(post_file(service_client, csv_of(20_001)), 422)
    assert "more than 20,000 rows; send it in parts" in problem["detail"]
