"""Requests that name a measured stack; its error distributions take seconds of processor time."""

import json
from dataclasses import replace
from urllib.parse import unquote

import pytest

from roofcast.serving.predict.question_rows import columns_from_rows
from roofcast.serving.predict.row_answers import PredictOptions, answer_columns
from tests.serving.http_client import Client, a_demand, a_question, problem_of

PREDICT = "/v1/predictions"


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
