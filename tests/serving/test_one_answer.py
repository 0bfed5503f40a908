"""The same question has the same answer on every surface."""

import csv
import json
import math
import random
from pathlib import Path
from typing import Any, Final

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.serving.predict.row_answers import METRIC_COLUMNS
from tests.serving.http_client import Client, Run, a_demand

N_QUESTION: Final = 200
ENGINES: Final = ("", "vllm", "sglang", "trtllm", "llama.cpp", "tensorrt-llm", "vlm")
TEXTS: Final = ("status", "reason", "assumed")


def draw_questions(seed: int) -> list[dict[str, Any]]:
    """Return questions of any model and accelerator, with columns left blank, some of which have no answer."""
    draw, catalog = random.Random(seed), load_catalog()  # noqa: S311
    models, parts = sorted(catalog.models), sorted(catalog.accelerators)
    rows = []
    for _ in range(N_QUESTION):
        loads: list[dict[str, Any]] = [{}, {"concurrency": draw.choice([1, 3.5, 16, 300])}]
        loads += [{"request_rate": draw.choice([0.01, 0.5, 4])}, {"load": "static_batch", "concurrency": 8}]
        row = {
            "model": draw.choice(models),
            "accelerator": draw.choice(parts),
            "n_accelerator": draw.choice([1, 1, 2, 4, 8]),
            "engine": draw.choice(ENGINES),
            "engine_version": draw.choice(["", "", "0.19.0", "main"]),
            "weight_precision": draw.choice(["", "", "bf16", "fp8", "int4"]),
            "n_input_token": draw.choice([1, 128, 1000, 30_000]),
            "n_output_token": draw.choice([1, 100, 2000]),
            "statistic": draw.choice(["mean", "p50", "p95"]),
        }
        optional = {"tp": draw.choice([1, 2, 3]), "kv_precision": "fp8", "prefix_cache_ratio": 0.3, "n_request": 1e9}
        chosen = {name: value for name, value in optional.items() if draw.random() < 0.15}
        rows.append(row | draw.choice(loads) | chosen)
    return rows


def differences(
    first: dict[str, Any], second: dict[str, Any], names: tuple[str, ...], tolerance: float = 1e-9
) -> list[str]:
    def is_same(one: object, other: object) -> bool:
        if one in (None, "") or other in (None, ""):
            return one in (None, "") and other in (None, "")
        if isinstance(one, float | int) and isinstance(other, float | int):
            return math.isclose(one, other, rel_tol=tolerance)
        return one == other

    return [f"{name}: {first[name]!r}, {second[name]!r}" for name in names if not is_same(first[name], second[name])]


@pytest.fixture(scope="module")
def questions() -> list[dict[str, Any]]:
    return draw_questions(20261127)


@pytest.fixture(scope="module")
def answers(shared: Client, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the answers over HTTP in one request."""
    rows: list[dict[str, Any]] = shared.answer("/v1/predictions", {"rows": questions})["rows"]
    assert {"ok", "does_not_run", "unknown_name", "does_not_fit"} <= {row["status"] for row in rows}
    return rows


def test_a_question_alone_is_answered_as_among_others(
    shared: Client, questions: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> None:
    for question, expected in zip(questions, answers, strict=True):
        (alone,) = shared.answer("/v1/predictions", {"rows": [question]})["rows"]
        assert not differences(alone, expected, (*METRIC_COLUMNS, *TEXTS)), question


def test_a_stream_of_rows_has_the_same_answers(
    shared: Client, questions: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> None:
    body = "\n".join(map(json.dumps, questions))
    lines = shared.send("POST", "/v1/predictions", body, {"content-type": "application/x-ndjson"}).text.splitlines()
    for i, (question, line, expected) in enumerate(zip(questions, lines, answers, strict=True), start=1):
        one = json.loads(line)
        one["reason"] = (one["reason"] or "").removeprefix(f"line {i}: ")
        assert not differences(one, expected, (*METRIC_COLUMNS, *TEXTS)), question


@pytest.mark.usefixtures("home")
def test_the_command_line_has_the_same_answers(
    run: Run, tmp_path: Path, questions: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> None:
    rows, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    names = list(dict.fromkeys(name for question in questions for name in question))
    with rows.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(questions)
    run.ok("predict", "--rows", rows, "--out", out)
    with out.open(newline="") as file:
        written = list(csv.DictReader(file))
    for question, cells, expected in zip(questions, written, answers, strict=True):
        one: dict[str, Any] = {**cells, **{name: float(cells[name] or "nan") for name in METRIC_COLUMNS}}
        one |= {name: None for name in METRIC_COLUMNS if math.isnan(one[name])}
        assert not differences(one, expected, (*METRIC_COLUMNS, *TEXTS)), question


def test_explanations_have_the_same_predictions(
    shared: Client, questions: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> None:
    for question, expected in zip(questions, answers, strict=True):
        response = shared.post("/v1/explanations", {"rows": [question]})
        if response.status_code != 200:
            assert response.status_code == 422
            assert expected["status"] != "ok", question
            assert response.json()["detail"] in f"rows: {expected['reason']}" or expected["reason"] in response.text
            continue
        prediction = response.json()["rows"][0]["prediction"]
        assert prediction["status"] == expected["status"], question
        if expected["status"] != "ok":
            continue
        ends = {"": "value", "_lo": "low", "_hi": "high"}
        flat = {
            f"{name}{end}": reasons[part]
            for name, reasons in prediction.items()
            if isinstance(reasons, dict)
            for end, part in ends.items()
        }
        assert not differences({**dict.fromkeys(METRIC_COLUMNS), **flat}, expected, METRIC_COLUMNS), question


def test_an_entry_of_a_recommendation_is_predicted_as_its_question(shared: Client) -> None:
    demand = a_demand(model="meta-llama/Llama-3.1-8B", limits=["ttft:p95<=2s", "tpot:p50<=50ms"])
    answer = shared.answer("/v1/recommendations", demand | {"n_entry": 20})
    assert len(answer["entries"]) > 5
    for entry in answer["entries"]:
        names = ("accelerator", "engine", "weight_precision", "tp", "pp", "dp", "ep")
        question = {name: entry[name] for name in names} | {
            "model": answer["model"],
            "n_accelerator": entry["tp"] * entry["pp"] * entry["dp"],
            "n_input_token": 120,
            "n_output_token": 20,
            "concurrency": entry["load_per_replica"],
            "n_request": 1e9,
        }
        for one in entry["predictions"]:
            (row,) = shared.answer("/v1/predictions", {"rows": [question | {"statistic": one["statistic"]}]})["rows"]
            expected = {
                f"{one['metric']}{end}": one[part] for end, part in (("", "value"), ("_lo", "low"), ("_hi", "high"))
            }
            assert not differences(row, expected, tuple(expected), tolerance=1e-5), question
