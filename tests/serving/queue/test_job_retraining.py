"""Retraining of the predictor of training jobs over HTTP and by command: from stored rows to a rollback."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from roofcast.data.measurements.target import TRAINING
from roofcast.serving import composition
from roofcast.serving.queue.queue import JobQueue
from roofcast.training.lifecycle.learned_targets import JOB_TARGET, LEARNED_TARGETS
from tests.data.row_builders import a_training_row
from tests.serving.http_client import Client, Run
from tests.serving.jobs.builders import a_job
from tests.training.builders import learning_from

pytestmark = pytest.mark.slow  # two retrainings

TARGET = {"target": "training"}
CAMPAIGNS = ["fms_fsdp", "fsdp_qlora", "litgpt", "ms_swift", "nemo", "torchtitan", "xtuner"]


def answers(client: Client) -> Any:
    return client.answer("/v1/training/predictions", {"rows": [a_job(framework="torchtitan")], "level": 0.5})


def test_rows_are_learnt_by_command_and_over_http_audited_and_rolled_back(
    client: Client, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "roofcast.audit")
    monkeypatch.setenv("ROOFCAST_HOME", str(home))
    monkeypatch.setitem(LEARNED_TARGETS, "training", learning_from(JOB_TARGET, CAMPAIGNS))
    registry = client.service.champions[TRAINING].registry
    monkeypatch.setattr(registry, "shipped", None)
    monkeypatch.setattr(composition, "shipped_predictor", lambda *_: None)

    first = run.json("retrain", "--target", "training")
    assert (first["promoted"], first["reason"]) == (True, "there was no champion")
    client.service.champions[TRAINING].refresh()
    before = answers(client)

    rows = [a_training_row(campaign="nightly", n_accelerator=n) for n in (8, 16, 32)]
    assert client.post("/v1/training/measurements", {"rows": rows}).json()["n_new"] == 3
    record = client.post("/v1/retrainings", TARGET).json()
    JobQueue(home, client.service).run(record["id"])
    done = client.get(f"/v1/retrainings/{record['id']}").json()
    assert (done["state"], done["target"], done["error"]) == ("done", "training", "")
    second = done["report"]
    assert second["n_row"] == first["n_row"] + 3
    assert second["champion_error"] is not None
    if not second["promoted"]:
        assert second["reason"]
        assert answers(client) == before
        body = json.dumps({"version": second["version"], **TARGET})
        response = client.send("PUT", "/v1/predictor", body, {"content-type": "application/json"})
        assert response.status_code == 200, response.text
    client.service.champions[TRAINING].refresh()
    assert answers(client)["predictor_version"] == second["version"]

    assert client.post("/v1/predictor/rollback", TARGET).json()["version"] == first["version"]
    assert answers(client) == before
    audit = [record.getMessage().split()[0] for record in caplog.records if record.name == "roofcast.audit"]
    assert audit == ["promotion", "promotion", "rollback"]
