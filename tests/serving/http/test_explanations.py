import math
from typing import Any

import pytest

from roofcast.training.explain.contributions import PARTS
from tests.serving.http_client import CONFIG, Client, a_full_question, a_question, problem_of

PATH = "/v1/explanations"
METRICS = ("ttft_s", "tpot_s", "itl_s", "e2e_s", "output_throughput_token_per_s")


def explain(client: Client, *rows: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    return list(client.answer(PATH, {"rows": list(rows), **changes})["rows"])


def test_contributions_multiply_to_the_prediction(shared: Client) -> None:
    question = a_question(engine="vllm", statistic="p95")
    (row,) = explain(shared, question)
    (answer,) = shared.post("/v1/predictions", {"rows": [question]}).json()["rows"]
    for metric in METRICS:
        reasons = row["prediction"][metric]
        assert tuple(reasons["contributions"]) == PARTS
        assert math.exp(sum(reasons["contributions"].values())) == pytest.approx(answer[metric])
        assert (reasons["low"], reasons["high"]) == (answer[f"{metric}_lo"], answer[f"{metric}_hi"])
        assert reasons["uncalibrated"] is None
    assert sum(row["bounds"]["tpot_s"].values()) == pytest.approx(1)


def test_every_column_of_a_question_is_read(shared: Client) -> None:
    (row,) = explain(shared, a_full_question())
    assert row["assumed"] == []
    assert row["question"]["chain_acceptance_ratio"] == 0.6
    (blank,) = explain(shared, a_question(load="offline", concurrency=None))
    assert "engine=other" in blank["assumed"]
    assert blank["remarks"] == []


def test_an_explanation_lists_the_nearest_measurements(shared: Client) -> None:
    (row,) = explain(
        shared, a_question(model="meta-llama/Llama-2-13b-hf", engine="tgis", accelerator="nvidia-h100-sxm-80gb")
    )
    near = row["prediction"]["ttft_s"]["nearest"]
    assert 1 <= len(near) <= 3
    assert near[0]["measured"] > 0
    assert -1 <= near[-1]["correlation"] <= near[0]["correlation"] <= 1
    assert {"campaign", "model", "accelerator", "differs"} <= set(near[0])


def test_references_are_one_of_the_contributions(shared: Client) -> None:
    question = a_question(model="mine", n_accelerator=1, engine="vllm")
    request = {"models": [{"name": "mine", "config": CONFIG}], "references": [question | {"tpot_s": 0.2}]}
    (row,) = explain(shared, question, **request)
    reasons = row["prediction"]["tpot_s"]
    shift = reasons["contributions"]["references"]
    assert shift > 0
    assert math.log(reasons["value"] / reasons["uncalibrated"]["value"]) == pytest.approx(shift)


def test_a_row_without_an_answer_has_a_reason_and_the_others_have_answers(shared: Client) -> None:
    rows = [
        a_question(),
        a_question(model="meta-llama/Llama-3.1-405B"),
        a_question(concurrency=None, request_rate=1e6),
    ]
    explanations = explain(shared, *rows)
    assert [row["prediction"]["status"] for row in explanations] == ["ok", "does_not_fit", "saturated"]
    assert explanations[1]["prediction"]["ttft_s"] is None
    assert "GB are usable" in explanations[1]["prediction"]["reason"]
    assert explanations[2]["is_saturated"]


def test_an_invalid_row_is_named(shared: Client) -> None:
    problem = problem_of(shared.post(PATH, {"rows": [a_question(), a_question(n_input_token=-1)]}), 422)
    assert problem["field"] == "n_input_token"
    assert problem["detail"].startswith("rows, line 2: ")
    assert problem_of(shared.post(PATH, {"rows": []}), 422)["field"] == "rows"
    assert problem_of(shared.post(PATH, {"rows": [a_question()] * 101}), 422)["field"] == "rows"


def test_a_sweep_explains_a_question_on_each_hypothetical_accelerator(shared: Client) -> None:
    question = a_question(engine="vllm")
    plain, fast = explain(shared, question, sweep="bandwidth=1,2")
    (alone,) = explain(shared, question)
    assert plain["estimate"] == alone["estimate"]
    assert fast["estimate"]["tpot_s"] < plain["estimate"]["tpot_s"]
    problem = problem_of(shared.post(PATH, {"rows": [question, question], "sweep": "bandwidth=1,2"}), 422)
    assert problem["field"] == "rows"
