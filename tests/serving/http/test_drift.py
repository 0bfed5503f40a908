"""Predicted against actual over HTTP: of an import, of the latest days, and in the metrics."""

import pytest

from roofcast.serving.drift import import_drift
from tests.conditions import wait_until
from tests.serving.http_client import Client, a_measurement, problem_of


def test_an_import_and_the_report_of_the_latest_days_tell_a_change(client: Client) -> None:
    loads = (8, 16, 32)
    before = [a_measurement(concurrency=n, date="2026-11-15") for n in loads]
    added = client.post("/v1/measurements", {"rows": before}).json()
    assert (added["n_new"], added["drift"]) == (3, None)
    first = client.get(added["drift_url"]).json()
    assert (first["n_compared"], first["n_repeat"], first["is_drift"]) == (3, 0, False)
    slow = [a_measurement(concurrency=n, date="2026-11-23", itl_s=0.0264) for n in loads]
    second = client.post("/v1/measurements?compare=true", {"rows": slow}).json()
    assert {change["metric"] for change in second["drift"]["changes"]} == {"itl_s"}
    report = client.get("/v1/drift?days=1").json()
    assert report["is_drift"]
    assert (report["n_row"], report["n_repeat"], report["n_changed"]) == (6, 6, 3)
    same = client.get(f"/v1/drift?import_id={second['import_id']}").json()
    assert same == second["drift"]
    monitor = client.app.state.health_monitor

    def shows_drift() -> bool:
        monitor.drift._due_s = 0.0
        client.run(lambda: monitor.check("drift"))
        return 'roofcast_drift_n_row{metric="ttft_s"} 6.0' in client.get("/metrics").text

    wait_until(shows_drift)


def test_an_unknown_import_is_404(shared: Client) -> None:
    assert problem_of(shared.get("/v1/drift?import_id=nothing"), 404)["field"] == "import_id"


def test_the_first_import_finds_the_learnt_names_loaded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_until(lambda: client.service.learnt_rows.is_loaded)
    monkeypatch.setattr(import_drift, "_shipped_names", None)
    added = client.post("/v1/measurements?compare=true", {"rows": [a_measurement()]}).json()
    assert added["drift"]["n_row"] == 1
