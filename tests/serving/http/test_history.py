"""Versions and changes of the predictor, and campaigns in detail."""

import pytest

from roofcast.serving.app_state.imports import import_report
from tests.serving.http.test_app import register_copy
from tests.serving.http_client import Client, a_measurement, problem_of


def test_versions_and_changes_follow_a_promotion(client: Client) -> None:
    version = register_copy(client.service)
    client.send("PUT", "/v1/predictor", f'{{"version": "{version}"}}', {"content-type": "application/json"})
    versions = client.get("/v1/predictor/versions").json()
    assert [(one["version"], one["in_service"]) for one in versions] == [("2", True), ("1", False)]
    (change, *_) = client.get("/v1/predictor/changes").json()
    assert (change["action"], change["version_before"], change["version"]) == ("promotion", "1", "2")
    assert change["caller"].startswith("key:")


def test_an_import_is_reported_with_what_training_uses(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_report, "TRAINED_ON", ("llm_pilot",))
    assert client.get("/v1/campaigns/report").json() == []
    client.post("/v1/measurements", {"rows": [a_measurement()]})
    (report,) = client.get("/v1/campaigns/report").json()
    assert report["campaign"] == "nightly"
    assert report["n_kept"] == 1
    rows = client.get("/v1/campaigns/nightly/measurements").json()
    assert (rows["n_row"], rows["n_learnt"]) == (1, 0)
    (row,) = rows["rows"]
    assert row["measured"] == {"ttft_s": 0.061, "itl_s": 0.0132}
    answer = client.post("/v1/predictions", {"rows": [row["question"]]}).json()
    assert answer["rows"][0]["status"] == "ok"


def test_measurements_of_a_shipped_campaign_are_spread_evenly(shared: Client) -> None:
    rows = shared.get("/v1/campaigns/llm_pilot/measurements?limit=5").json()
    assert len(rows["rows"]) == 5
    assert rows["n_row"] == rows["n_learnt"] == 2632
    assert len({row["question"]["model"] for row in rows["rows"]}) > 2


def test_an_unknown_campaign_is_a_problem(shared: Client) -> None:
    problem_of(shared.get("/v1/campaigns/llm_pilo/measurements"), 404)
