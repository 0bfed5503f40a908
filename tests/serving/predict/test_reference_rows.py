from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from roofcast.serving.predict.row_answers import ANSWER_COLUMNS, UNCALIBRATED_COLUMNS
from tests.serving.http_client import ACCELERATOR, CONFIG, MODEL, Client, Run, a_demand, a_question, problem_of

PREDICT, RECOMMEND = "/v1/predictions", "/v1/recommendations"
METRICS = ("ttft_s", "tpot_s", "output_throughput_token_per_s")
INLINE_MODEL = {"name": "my-14b", "config": CONFIG}


def a_reference(**changes: Any) -> dict[str, Any]:
    return a_question(n_accelerator=1, engine="vllm", ttft_s=0.4, tpot_s=0.05) | changes


def predict(client: Client, references: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    body = {"rows": [a_question(engine="vllm", **changes)], "references": references, "models": [INLINE_MODEL]}
    (row,) = client.answer(PREDICT, body)["rows"]
    return dict(row)


def test_references_shift_and_narrow_predictions(shared: Client) -> None:
    uncalibrated = predict(shared, [], model="my-14b")
    factor = {metric: 0.5 if metric == "output_throughput_token_per_s" else 2.0 for metric in METRICS}
    measured = {metric: factor[metric] * uncalibrated[metric] for metric in METRICS}
    row = predict(shared, [a_reference(model="my-14b", **measured)], model="my-14b")
    assert tuple(row)[-len(UNCALIBRATED_COLUMNS) :] == UNCALIBRATED_COLUMNS
    for metric in METRICS:
        assert row[f"{metric}_uncalibrated"] == uncalibrated[metric]
        assert row[f"{metric}_uncalibrated_hi"] == uncalibrated[f"{metric}_hi"]
        low, high = sorted((1.0, factor[metric]))
        assert low < row[metric] / uncalibrated[metric] < high
        assert row[f"{metric}_hi"] / row[f"{metric}_lo"] < uncalibrated[f"{metric}_hi"] / uncalibrated[f"{metric}_lo"]


@pytest.mark.parametrize("measured", [{"e2e_s": 3.0}, {"itl_s": 0.1}, {"itl_s": 0.1, "statistic": "p50"}])
def test_each_measured_metric_shifts_related_predictions(shared: Client, measured: dict[str, Any]) -> None:
    reference = a_reference(model="my-14b", ttft_s=None, tpot_s=None, **measured)
    row = predict(shared, [reference], model="my-14b")
    shift = {metric: row[metric] / row[f"{metric}_uncalibrated"] for metric in METRICS}
    assert shift["tpot_s"] > 1.05
    assert shift["output_throughput_token_per_s"] < 0.95
    assert shift["ttft_s"] == pytest.approx(1.0, abs=0.05)
    body = {"rows": [a_question(engine="vllm", model="my-14b")], "models": [INLINE_MODEL], "references": [reference]}
    (explanation,) = shared.post("/v1/explanations", body).json()["rows"]
    assert explanation["prediction"]["tpot_s"]["contributions"]["references"] > 0.05


def test_without_references_there_are_no_uncalibrated_fields(shared: Client) -> None:
    assert tuple(predict(shared, []))[-4:] == ANSWER_COLUMNS[-4:]


@pytest.mark.parametrize(
    ("changes", "field", "detail"),
    [
        ({"ttft_s": -1}, "ttft_s", "must be a number from"),
        ({"tpot_s": "fast"}, "tpot_s", "must be a number from"),
        ({"ttft_s": True}, "ttft_s", "must be a number from"),
        ({"ttft_s": None, "tpot_s": ""}, "ttft_s", "give one of"),
        ({"tpot_s": 50}, "tpot_s", "is over 300 times what is predicted; give seconds"),
        ({"tpot_s": 5e-6}, "tpot_s", "is under 1/300 of what is predicted; give seconds"),
        (
            {"output_throughput_token_per_s": 1e8},
            "output_throughput_token_per_s",
            "times what is predicted; give tokens",
        ),
        (
            {"output_throughput_token_per_s": 1e-3},
            "output_throughput_token_per_s",
            "is under 1/300 of what is predicted",
        ),
        ({"concurrency": None}, "concurrency", "give it, or request_rate"),
        ({"n_input_token": None}, "n_input_token", "must be given"),
        ({"model": "llama-9"}, "model", "no 'llama-9' is known"),
        ({"accelerator": "h10"}, "accelerator", "no 'h10' is known"),
        ({"concurrency": None, "request_rate": 1e5}, "ttft_s", "of what is predicted"),
        ({"model": "meta-llama/Llama-3.1-405B"}, "n_accelerator", "GB are usable"),
        ({"memory_byte": 1}, "memory_byte", "is not a column of references"),
    ],
)
def test_one_invalid_reference_refuses_the_request(
    shared: Client, changes: dict[str, Any], field: str, detail: str
) -> None:
    body = {"rows": [a_question()], "references": [a_reference(), a_reference(**changes)]}
    problem = problem_of(shared.post(PREDICT, body), 422)
    assert problem["field"] == field
    assert detail in problem["detail"]
    assert problem["detail"].startswith("references" if field == "memory_byte" else "references, line 2: ")


def test_references_without_a_row_are_refused(shared: Client) -> None:
    assert "no row" in problem_of(shared.post(PREDICT, {"rows": [a_question()], "references": [{}]}), 422)["detail"]
    many = [a_reference()] * 201
    assert "200" in problem_of(shared.post(PREDICT, {"rows": [a_question()], "references": many}), 422)["detail"]


@pytest.mark.parametrize("name", ["my-14b", MODEL])
def test_references_of_a_recommendation_are_of_its_model(shared: Client, name: str) -> None:
    model = {"name": name, "config": CONFIG}
    demand = a_demand(model=model, constraints={"accelerators": [ACCELERATOR], "engine": "vllm"}, limits=["tpot<=9s"])
    reference = a_reference(tpot_s=0.2, ttft_s=2)
    del reference["model"]
    uncalibrated, measured, named = (
        shared.post(RECOMMEND, demand | {"references": rows}).json()["entries"][0]["predictions"]
        for rows in ([], [reference], [reference | {"model": name}])
    )
    assert measured == named
    assert {metric["uncalibrated"] for metric in uncalibrated} == {None}
    tpot = next(m for m in measured if (m["metric"], m["statistic"]) == ("tpot_s", "p50"))
    assert tpot["value"] > tpot["uncalibrated"]


def test_predict_with_a_file_of_references(run: Run, home: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(
        f"model,accelerator,n_input_token,n_output_token\n{MODEL},{ACCELERATOR},120,20\n"
    )
    header = "model,accelerator,n_input_token,n_output_token,concurrency,ttft_s"
    file = tmp_path / "ref.csv"
    file.write_text(f"{header}\n{MODEL},{ACCELERATOR},120,20,1,0.2\n")
    command = ("predict", "--rows", tmp_path / "in.csv", "--out", tmp_path / "out.csv", "--reference", file)
    run.ok(*command)
    answers = pd.read_csv(tmp_path / "out.csv")
    assert tuple(answers.columns[4:]) == (*ANSWER_COLUMNS, *UNCALIBRATED_COLUMNS)
    assert answers["ttft_s"].iloc[0] != answers["ttft_s_uncalibrated"].iloc[0]
    assert answers["tpot_s"].iloc[0] == answers["tpot_s_uncalibrated"].iloc[0]
    (tmp_path / "out.csv").unlink()
    file.write_text(f"{header}\n\n{MODEL},{ACCELERATOR},120,20,1,0.2\n{MODEL},{ACCELERATOR},120,20,1,x\n")
    assert "ref.csv, line 4: ttft_s: must be a number" in run.error(*command)
    assert not (tmp_path / "out.csv").exists()
