"""``/v1/stacks``, and requests that name a stack."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest

from roofcast.data.store.stack_profiles import SHARED
from roofcast.serving.predict.question_rows import columns_from_rows
from roofcast.serving.predict.row_answers import UNCALIBRATED_COLUMNS, PredictOptions, answer_columns
from tests.serving.http_client import Client, a_demand, a_question, problem_of
from tests.serving.stacks.test_profiles import a_run

STACKS, PREDICT = "/v1/stacks", "/v1/predictions"


def add(client: Client, name: str, *rows: dict[str, Any]) -> dict[str, Any]:
    return dict(client.answer(STACKS, {"name": name, "rows": list(rows)}, status=201))


def test_a_stack_is_kept_listed_shown_and_removed(shared: Client) -> None:
    assert add(shared, "rack", a_run(), a_run(64)) == {"name": "rack", "n_new": 2, "n_known": 0, "n_row": 2}
    assert add(shared, "rack", a_run(64))["n_known"] == 1
    (summary,) = (one for one in shared.get(STACKS).json() if one["name"] == "rack")
    assert (summary["name"], summary["n_row"], summary["is_shared"]) == ("rack", 2, False)
    report = shared.get(f"{STACKS}/rack?n_next=1&level=0.5").json()
    assert (report["n_run"], report["level"], len(report["measure_next"])) == (2, 0.5, 1)
    assert {one["metric"] for one in report["errors"]} >= {"ttft_s", "tpot_s"}
    assert shared.send("DELETE", f"{STACKS}/rack").json() == {"name": "rack", "n_row": 2}
    assert problem_of(shared.get(f"{STACKS}/rack"), 404)["field"] == "stack"


def test_requests_that_name_a_stack_are_answered_as_with_its_rows_as_references(shared: Client) -> None:
    rows = [a_run(slower=3), a_run(64, slower=3)]
    add(shared, "slow", *rows)
    body = {"rows": [a_question(engine="vllm")]}
    plain, by_stack, by_rows = (
        shared.post(PREDICT, body | more).json()["rows"][0] for more in ({}, {"stack": "slow"}, {"references": rows})
    )
    numbers = {name: value for name, value in by_rows.items() if isinstance(value, float)}
    assert {name: by_stack[name] for name in numbers} == pytest.approx(numbers, rel=1e-9)
    assert {**by_stack, **numbers} == by_rows
    used = shared.post(PREDICT, body | {"stack": "slow"}).json()["stack"]
    assert used == {"name": "slow", "kind": "profile", "notes": []}
    assert set(by_stack) - set(plain) == set(UNCALIBRATED_COLUMNS)
    assert by_stack["tpot_s_uncalibrated"] == plain["tpot_s"]
    kind = {"content-type": "application/x-ndjson"}
    line = shared.send("POST", f"{PREDICT}?stack=slow", json.dumps(body["rows"][0]) + "\n", kind).json()
    assert line["tpot_s"] == pytest.approx(by_stack["tpot_s"])
    explanation = shared.post("/v1/explanations", body | {"stack": "slow"}).json()["rows"][0]["prediction"]
    assert explanation["tpot_s"]["value"] == pytest.approx(by_stack["tpot_s"])
    assert explanation["tpot_s"]["uncalibrated"]["value"] == pytest.approx(plain["tpot_s"])
    demand = a_demand(limits=["itl:p50<=5s", "ttft:p50<=50s"], constraints={"engines": ["vllm"]}, n_entry=1)
    (entry,) = shared.post("/v1/recommendations", demand | {"stack": "slow"}).json()["entries"]
    assert all(one["uncalibrated"] is not None for one in entry["predictions"])


def test_a_stack_belongs_to_the_key_that_made_it(shared: Client) -> None:
    add(shared, "mine", a_run())
    own = shared._client.headers["authorization"]
    shared.use_key(shared.make_key("write"))
    try:
        body = {"rows": [a_question()], "stack": "mine"}
        assert problem_of(shared.post(PREDICT, body), 404)["field"] == "stack"
        assert problem_of(shared.send("DELETE", f"{STACKS}/mine"), 404)["field"] == "stack"
        assert "mine" not in {one["name"] for one in shared.get(STACKS).json()}
    finally:
        shared._client.headers["authorization"] = own


def test_an_invalid_row_refuses_all(shared: Client) -> None:
    body = {"name": "broken", "rows": [a_run(), a_run(tpot_s=-1)]}
    problem = problem_of(shared.post(STACKS, body), 422)
    assert problem["field"] == "tpot_s"
    assert "line 2" in problem["detail"]
    assert problem_of(shared.get(f"{STACKS}/broken"), 404)


def test_a_profile_of_others_is_not_removed(shared: Client) -> None:
    shared.service.store.stacks.add(SHARED, "theirs", [a_run()])
    problem = problem_of(shared.send("DELETE", f"{STACKS}/theirs"), 422)
    assert "made by the command line" in problem["detail"]


@pytest.mark.slow
def test_answers_about_a_measured_stack_say_so(shared: Client) -> None:
    names = [one["name"] for one in shared.get("/v1/measured-stacks").json()]
    full = next(name for name in names if "/" not in name)
    predictor = shared.service.active_model.bundle.predictor.on_stack(full)
    body = {"rows": [a_question(engine="vllm")], "stack": full}
    answers = shared.post(PREDICT, body).json()
    assert (answers["stack"]["name"], answers["stack"]["kind"]) == (full, "measured")
    assert "any other engine" in answers["stack"]["notes"][0]
    plain = shared.post(PREDICT, {"rows": body["rows"]}).json()
    assert plain["stack"] is None
    assert answers["rows"][0]["tpot_s"] != plain["rows"][0]["tpot_s"]
    bundle = replace(shared.service.active_model.bundle, predictor=predictor)
    options = PredictOptions(bundle, shared.service.catalog)
    expected = answer_columns(columns_from_rows(body["rows"]), options)["tpot_s"]
    assert answers["rows"][0]["tpot_s"] == pytest.approx(expected[0])
    kind = {"content-type": "application/x-ndjson"}
    line = shared.send("POST", f"{PREDICT}?stack={full}", json.dumps(body["rows"][0]) + "\n", kind)
    assert unquote(line.headers["x-stack"]).startswith(f"measured stack {full}; it measured ")
    explanations = shared.post("/v1/explanations", body).json()
    assert explanations["stack"]["kind"] == "measured"
    assert explanations["rows"][0]["prediction"]["tpot_s"]["value"] == pytest.approx(answers["rows"][0]["tpot_s"])
    recommendation = shared.post("/v1/recommendations", a_demand(n_entry=1) | {"stack": full}).json()
    assert recommendation["stack"]["name"] == full
    problem = problem_of(shared.post(PREDICT, body | {"stack": full + "x"}), 404)
    assert repr(full) in problem["detail"]
