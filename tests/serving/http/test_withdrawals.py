"""Withdrawal and confirmation of measurements over HTTP."""

import logging
from typing import Any

import pytest

from tests.serving.http_client import Client, a_measurement, problem_of

PATH = "/v1/measurements"
ONE = {"n_row": 1, "n_refused": 0}
FAR = a_measurement(ttft_s=8.0)


def post_as(client: Client, key: str, *rows: dict[str, Any]) -> dict[str, Any]:
    client.use_key(client.make_key("write", name=key))
    return dict(client.answer(PATH, {"rows": list(rows)}, status=201))


def listed(client: Client) -> list[tuple[str, str, str]]:
    return [(row["key"], row["state"], row["import_id"]) for row in client.get(PATH).json()]


def test_a_key_withdraws_its_own_rows_and_an_admin_any(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    admin = client.make_key("admin", name="boss")
    first = post_as(client, "a", a_measurement())
    second = post_as(client, "b", a_measurement(concurrency=32))
    assert (second["n_new"], second["n_quarantined"], second["n_withdrawn"]) == (1, 0, 0)
    problem = problem_of(client.post(f"{PATH}/withdrawals", {"import_id": first["import_id"]}), 404)
    assert problem["field"] == "import_id"
    with caplog.at_level(logging.INFO, "roofcast.audit"):
        assert client.post(f"{PATH}/withdrawals", {"campaign": "nightly"}).json() == ONE
    assert "withdrawal caller=key:b campaign=nightly n_row=1" in caplog.messages
    assert listed(client) == [("b", "withdrawn", second["import_id"])]
    client.use_key(admin)
    assert sorted(listed(client)) == [
        ("a", "accepted", first["import_id"]),
        ("b", "withdrawn", second["import_id"]),
    ]
    assert client.post(f"{PATH}/withdrawals", {"key": "a"}).json() == ONE
    assert client.service.store.load().empty
    summaries = client.get(f"{PATH}/imports").json()
    assert {(s["key"], s["n_row"], s["n_withdrawn"]) for s in summaries} == {("a", 1, 1), ("b", 1, 1)}
    client.use_key(None)
    assert client.post(f"{PATH}/withdrawals", {"key": "a"}).status_code == 401


def test_a_key_restores_its_own_withdrawal_and_an_admin_any(client: Client) -> None:
    admin, own = client.make_key("admin", name="boss"), client.make_key("write", name="a")
    selection = {"key": "a"}
    client.use_key(own)
    client.post(PATH, {"rows": [a_measurement()]})
    assert client.post(f"{PATH}/withdrawals", selection).json() == ONE
    assert client.post(f"{PATH}/restorations", selection).json() == ONE
    client.use_key(admin)
    assert client.post(f"{PATH}/withdrawals", selection).json() == ONE
    client.use_key(own)
    problem_of(client.post(f"{PATH}/restorations", selection), 403)
    assert client.service.store.load().empty
    client.use_key(admin)
    assert client.post(f"{PATH}/restorations", selection).json() == ONE


def test_a_row_far_from_what_others_measured_waits_for_a_confirmation(client: Client) -> None:
    added = post_as(client, "ci", a_measurement(), FAR)
    assert (added["n_new"], added["n_quarantined"]) == (2, 1)
    (row,) = (row for row in client.get(PATH).json() if row["state"] == "quarantined")
    assert row["ttft_s"] == FAR["ttft_s"]
    assert "times the estimate" in row["reason"]
    assert len(client.service.store.load_learnable().rows) == 1
    assert client.post(f"{PATH}/confirmations", {"key": "ci"}).json() == ONE
    learnable = client.service.store.load_learnable()
    assert learnable.uploaders.tolist() == ["ci", "ci"]


def test_rows_of_an_admin_are_the_operators(client: Client) -> None:
    assert client.post(PATH, {"rows": [a_measurement()]}).status_code == 201
    assert client.service.store.load_learnable().uploaders.tolist() == [""]


@pytest.mark.parametrize("body", [{}, {"import_id": "a", "key": "b"}])
def test_a_selection_has_one_name(client: Client, body: dict[str, str]) -> None:
    assert problem_of(client.post(f"{PATH}/withdrawals", body), 422)["field"] == "import_id"


def test_what_a_key_may_not_restore_is_forbidden_with_the_cure(client: Client) -> None:
    admin, own = client.make_key("admin", name="boss"), client.make_key("write", name="a")
    first = client.post(PATH, {"rows": [a_measurement(concurrency=32)]}).json()
    client.use_key(own)
    for verb in ("withdrawals", "restorations", "confirmations"):
        problem = problem_of(client.post(f"{PATH}/{verb}", {"import_id": first["import_id"]}), 403)
        assert (problem["field"], problem["type"]) == ("import_id", "urn:roofcast:problem:not-allowed")
        assert "has no row of the key 'a', which may" in problem["detail"]
    assert problem_of(client.post(f"{PATH}/restorations", {"import_id": "ab"}), 404)["field"] == "import_id"
    second, third = (client.post(PATH, {"rows": [a_measurement(concurrency=n)]}).json() for n in (1, 2))
    client.use_key(admin)
    client.post(f"{PATH}/withdrawals", {"import_id": second["import_id"]})
    client.use_key(own)
    problem = problem_of(client.post(f"{PATH}/restorations", {"import_id": second["import_id"]}), 403)
    assert "an operator alone restores what one withdrew" in problem["detail"]
    assert f"roofcast measurements restore --import {second['import_id']}" in problem["detail"]
    client.post(f"{PATH}/withdrawals", {"import_id": third["import_id"]})
    assert client.post(f"{PATH}/restorations", {"key": "a"}).json() == {"n_row": 1, "n_refused": 1}
    assert client.post(f"{PATH}/restorations", {"import_id": third["import_id"]}).json() == {
        "n_row": 0,
        "n_refused": 0,
    }


def test_an_operator_claims_the_rows_of_a_key_only_with_the_option(client: Client) -> None:
    admin = client.make_key("admin", name="boss")
    rows = [a_measurement(concurrency=n) for n in (1, 2)]
    post_as(client, "ci", *rows)
    problem = problem_of(client.post(f"{PATH}?claim=true", {"rows": rows}), 403)
    assert problem["field"] == "claim"
    client.use_key(admin)
    added = client.post(PATH, {"rows": rows}).json()
    assert (added["n_known"], added["n_claimed"], added["n_of_key"]) == (2, 0, {"ci": 2})
    (warning,) = added["warnings"]
    assert warning.startswith("2 rows are stored by the key 'ci' (2) and not claimed by this import")
    assert "?claim=true" in warning
    assert {row["key"] for row in client.get(PATH).json()} == {"ci"}
    claimed = client.post(f"{PATH}?claim=true", {"rows": rows}).json()
    assert (claimed["n_claimed"], claimed["n_of_key"]) == (2, {"ci": 2})
    (warning,) = claimed["warnings"]
    assert f"roofcast measurements withdraw --import {claimed['import_id']}" in warning
    assert {row["key"] for row in client.get(PATH).json()} == {"boss"}
    client.post(f"{PATH}/withdrawals", {"import_id": claimed["import_id"]})
    assert {(row["key"], row["state"]) for row in client.get(PATH).json()} == {("ci", "accepted")}


def test_the_answer_to_an_import_warns_of_rows_in_quarantine(client: Client) -> None:
    added = post_as(client, "ci", FAR)
    (reason,), (warning,) = added["quarantine_reasons"], added["warnings"]
    assert warning.startswith("1 row is in quarantine: far from what others measured, and no training uses")
    assert reason in warning
    request = f'POST /v1/measurements/confirmations with {{"import_id": "{added["import_id"]}"}}'
    assert request in warning
    assert f"`roofcast measurements confirm --import {added['import_id']}`" in warning
