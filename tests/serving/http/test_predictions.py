import re
from typing import Any

import numpy as np
import pytest

from roofcast.data.campaigns import load_campaigns
from roofcast.data.measurements.schema import INPUT_COLUMNS
from roofcast.serving.predict.question_rows import rows_from_table
from roofcast.serving.predict.row_answers import LOAD_REMARK
from tests.serving.http_client import CONFIG, MODEL, Client, a_full_question, a_question, problem_of

PATH = "/v1/predictions"


def predict(client: Client, *rows: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    return list(client.answer(PATH, {"rows": list(rows), **changes})["rows"])


def test_a_row_is_returned_with_intervals(shared: Client) -> None:
    (row,) = predict(shared, a_question())
    assert {name: row[name] for name in a_question()} == a_question()
    for metric in ("ttft_s", "tpot_s", "itl_s", "e2e_s", "output_throughput_token_per_s"):
        assert 0 < row[f"{metric}_lo"] < row[metric] < row[f"{metric}_hi"]
    assert (row["status"], row["reason"], row["outside"]) == ("ok", "", False)


def test_a_doubtful_row_has_an_answer_and_a_reason(shared: Client) -> None:
    (row,) = predict(shared, a_question(n_accelerator=16, tp=16))
    assert row["status"] == "ok"
    assert "beyond the accelerators that the fast link joins" in row["reason"]


def test_a_blank_load_is_reported_in_the_reason(shared: Client) -> None:
    beyond = {"n_accelerator": 16, "tp": 16}
    rows = [a_question(concurrency=None), a_question(concurrency=None, **beyond), a_question(concurrency=1)]
    blank, doubtful, explicit = predict(shared, *rows)
    assert (blank["status"], blank["reason"]) == ("ok", LOAD_REMARK)
    assert doubtful["reason"].startswith(f"{LOAD_REMARK}; tensor parallelism")
    assert explicit["reason"] == ""
    assert blank["ttft_s"] == explicit["ttft_s"]


def test_every_column_of_a_measurement_but_its_results_is_read(shared: Client) -> None:
    assert a_full_question().keys() == INPUT_COLUMNS.keys()
    (row,) = predict(shared, a_full_question())
    assert (row["status"], row["assumed"]) == ("ok", "")
    assert {name: row[name] for name in a_full_question()} == a_full_question()


def test_names_as_people_type_them_are_accepted_and_the_answer_says_what_they_mean(shared: Client) -> None:
    typed, plain, ambiguous, wide = predict(
        shared,
        a_question(accelerator="4090", weight_precision="Q4_K_M"),
        a_question(accelerator="nvidia-rtx-4090-24gb", engine="llama.cpp", weight_precision="int4"),
        a_question(accelerator="a100"),
        a_question(accelerator="nvidia-rtx-4090-24gb", weight_precision="Q6_K"),
    )
    assert typed["tpot_s"] == plain["tpot_s"]
    meant = "accelerator '4090' is taken as nvidia-rtx-4090-24gb; weight_precision 'Q4_K_M' is taken as int4"
    assert (typed["reason"], plain["reason"]) == (meant, "")
    assert wide["tpot_s"] > plain["tpot_s"]
    assert wide["reason"] == "weight_precision 'Q6_K' is taken as int4 of 6.56 bits a weight"
    assert ambiguous["status"] == "unknown_name"
    assert "'a100' may be nvidia-a100-sxm-40gb, nvidia-a100-sxm-80gb" in ambiguous["reason"]


def test_what_is_known_moves_the_answer(shared: Client) -> None:
    rows = [
        a_question(),
        a_question(prefix_caching="on", prefix_cache_ratio=0.9, n_input_token=4000),
        a_question(n_input_token=4000),
        a_question(load="static_batch"),
        a_question(load="offline", concurrency=None),
        a_question(speculation="eagle", n_speculative_token=3, chain_acceptance_ratio=0.9),
    ]
    plain, cached, uncached, static, offline, speculative = predict(shared, *rows)
    assert cached["ttft_s"] < uncached["ttft_s"]
    assert static["ttft_s"] != plain["ttft_s"]
    assert offline["output_throughput_token_per_s"] > plain["output_throughput_token_per_s"]
    assert offline["reason"] == ""
    assert speculative["tpot_s"] < plain["tpot_s"]


def test_usual_values_are_listed(shared: Client) -> None:
    blank, caching, speculative, wrong = predict(
        shared,
        a_question(concurrency=None),
        a_question(prefix_caching="on"),
        a_question(speculation="mtp"),
        a_question(tp=3),
    )
    assert {"concurrency=1", "weight_precision=bf16", "graphs=on"} <= {*blank["assumed"].split()}
    assert "prefix_cache_ratio=0" in caching["assumed"].split()
    assert {"n_speculative_token=3", "chain_acceptance_ratio=typical"} <= {*speculative["assumed"].split()}
    assert wrong["assumed"] == ""


@pytest.mark.parametrize(
    ("body", "field", "near"),
    [
        ({"rows": [a_question(n_input_tokens=1)]}, "n_input_tokens", "n_input_token"),
        ({"rows": [a_question(chunk_size=1)]}, "chunk_size", "chunk_size_token"),
        ({"row": [a_question()], "rows": [a_question()]}, "row", "rows"),
        ({"rows": [a_question()], "model": []}, "model", "models"),
        ({"rows": [a_question()], "models": [{"name": "m", "config": {}, "nam": 1}]}, "models.0.nam", "name"),
    ],
)
def test_a_misspelt_field_is_told_the_right_one(shared: Client, body: dict[str, Any], field: str, near: str) -> None:
    problem = problem_of(shared.post(PATH, body), 422)
    assert problem["field"] == field
    assert problem["did_you_mean"][0] == near
    assert f"did you mean {near}" in problem["detail"]


def test_a_context_that_is_configured_bounds_the_requests(shared: Client) -> None:
    short, long = predict(
        shared,
        a_question(max_context_token=100),
        a_question(n_input_token=140_000, max_context_token=200_000, concurrency=1),
    )
    assert (short["status"], short["reason"][:17]) == ("out_of_range", "max_context_token")
    assert long["status"] == "ok"


def test_a_long_run_has_a_lower_ttft_than_a_short_one(shared: Client) -> None:
    many = {"concurrency": 64, "statistic": "p99"}
    rows = [a_question(**many, n_request=n) for n in (64, 640, 1e9)]
    at_once, short, long = (row["ttft_s"] for row in predict(shared, *rows))
    assert long < min(at_once, short)
    (invalid,) = predict(shared, a_question(n_request=0))
    assert (invalid["status"], invalid["reason"][:9]) == ("invalid", "n_request")


def test_an_invalid_row_has_a_status_and_the_others_have_answers(shared: Client) -> None:
    rows = [
        a_question(),
        a_question(model="meta-llama/Llama-3.1-8"),
        a_question(accelerator="nvidia-a100-pciee-80gb"),
        a_question(n_input_token=-1),
        a_question(n_input_token=10**400),
        a_question(n_input_token="many"),  # noqa: S106
        a_question(n_accelerator=1.5),
        a_question(model=None),
        a_question(request_rate=1.0),
        a_question(model="meta-llama/Llama-3.1-405B"),
        a_question(n_input_token=131_072),
        a_question(concurrency=None, request_rate=1e6),
        a_question(concurrency=17),
    ]
    answers = predict(shared, *rows)
    assert [row["status"] for row in answers] == [
        "ok", "unknown_name", "unknown_name", "invalid", "invalid", "invalid", "invalid", "invalid", "invalid",
        "does_not_fit", "out_of_range", "saturated", "ok",
    ]  # fmt: skip
    for row in answers:
        assert (row["ttft_s"] is None) == (row["status"] != "ok") == bool(row["reason"])
    assert f"did you mean '{MODEL}'" in answers[1]["reason"]
    assert answers[10]["reason"].startswith("n_input_token: 131072 with 20 output exceeds the model's context")


def test_blank_columns_get_defaults(shared: Client) -> None:
    minimal = {name: a_question()[name] for name in ("model", "accelerator", "n_input_token", "n_output_token")}
    full = {**minimal, "n_accelerator": 1, "concurrency": 1, "statistic": "mean", "tp": 1, "pp": 1, "dp": 1}
    blank = {**minimal, "concurrency": "", "request_rate": "  ", "engine": None}
    values = [row["ttft_s"] for row in predict(shared, minimal, full, blank)]
    assert values == [values[0]] * 3


def test_a_model_of_the_request_is_predicted_and_not_registered(shared: Client) -> None:
    (row,) = predict(shared, a_question(model="mine"), models=[{"name": "mine", "config": CONFIG}])
    assert row["status"] == "ok"
    (row,) = predict(shared, a_question(model="mine"))
    assert row["status"] == "unknown_name"


@pytest.mark.parametrize("name", [MODEL, MODEL.lower(), "llama-3.1-8b", "Meta-Llama/Llama_3.1-8B"])
def test_a_config_of_the_request_has_precedence_over_a_catalogue_model(shared: Client, name: str) -> None:
    (own,) = predict(shared, a_question(model="mine"), models=[{"name": "mine", "config": CONFIG}])
    (row,) = predict(shared, a_question(model=name), models=[{"name": name, "config": CONFIG}])
    assert row["tpot_s"] == own["tpot_s"] != predict(shared, a_question(model=name))[0]["tpot_s"]


@pytest.mark.parametrize(("first", "second"), [("m", "m"), ("my-model", "My_Model")])
def test_a_name_with_two_configs_is_refused(shared: Client, first: str, second: str) -> None:
    def body(*configs: dict[str, Any]) -> dict[str, Any]:
        models = [{"name": name, "config": config} for name, config in zip((first, second), configs, strict=True)]
        return {"rows": [a_question(model=first)], "models": models}

    other = CONFIG | {"num_hidden_layers": 41}
    assert f"the name '{second}' has two configs" in problem_of(shared.post(PATH, body(CONFIG, other)), 422)["detail"]
    assert shared.post(PATH, body(CONFIG, CONFIG)).status_code == 200


def test_the_number_of_rows_is_limited(shared: Client) -> None:
    row = {"model": "m", "accelerator": "a"}
    assert "at most 5000, got 5001" in problem_of(shared.post(PATH, {"rows": [row] * 5001}), 422)["detail"]
    assert "rows" in problem_of(shared.post(PATH, {"rows": []}), 422)["detail"]
    assert len(predict(shared, *[a_question(concurrency=1 + i % 100) for i in range(5000)])) == 5000


@pytest.mark.parametrize(
    ("row", "field"),
    [
        (a_question(ttft=1), "ttft"),
        ({}, "model"),
        ({"model": MODEL}, "accelerator"),
        ([], "rows.0"),
        (7, "rows.0"),
    ],
)
def test_rows_with_invalid_fields_are_refused(shared: Client, row: Any, field: str) -> None:
    assert problem_of(shared.post(PATH, {"rows": [row]}), 422)["field"] == field


@pytest.mark.parametrize("column", ["model", "accelerator"])
def test_the_longest_unknown_name_has_a_status(shared: Client, column: str) -> None:
    (row,) = predict(shared, a_question(**{column: "x" * 400}))
    assert row["status"] == "unknown_name"


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        (["vllm"], "must be one text, not a list or an object"),
        ({"a": 1}, "must be one text, not a list or an object"),
        ("x" * 401, "must be at most 400 characters long"),
    ],
)
@pytest.mark.parametrize("column", ["engine", "model"])
def test_a_cell_that_is_no_text_or_number_makes_its_row_invalid(
    shared: Client, column: str, cell: Any, problem: str
) -> None:
    bad, good = predict(shared, a_question(**{column: cell}), a_question())
    assert (bad["status"], bad["reason"], bad[column]) == ("invalid", f"{column}: {problem}", cell)
    assert good["status"] == "ok"
    (endless,) = predict(shared, a_question(concurrency=10**400))
    assert endless["reason"].startswith("concurrency: must be a number from 1 to 1,000,000, got '1000")


def test_the_problem_of_a_level_too_high_has_the_highest(shared: Client) -> None:
    problem = problem_of(shared.post(PATH, {"rows": [a_question()], "level": 0.99}), 409)
    assert "ask for at most 0.983" in problem["detail"]


def test_a_saturated_replica_has_the_rate_that_it_holds_and_no_latency_of_its_queue(shared: Client) -> None:
    load = {"concurrency": None, "engine": "vllm"}
    (row,) = predict(shared, a_question(**load, request_rate=1000))
    assert (row["status"], row["ttft_s"], row["e2e_s"]) == ("saturated", None, None)
    assert row["tpot_s"] > 0
    match = re.search(
        r"sustains, about ([\d.]+)/s; the queue grows by ([\d,.]+) requests a second, TTFT is", row["reason"]
    )
    assert match
    held, growth = (float(text.replace(",", "")) for text in match.groups())
    assert held + growth == pytest.approx(1000, rel=0.01)
    assert predict(shared, a_question(**load, request_rate=0.8 * held))[0]["status"] == "ok"


def test_an_answer_of_one_token_has_no_time_per_token(shared: Client) -> None:
    (row,) = predict(shared, a_question(n_output_token=1))
    assert (row["status"], row["tpot_s"], row["itl_s"]) == ("ok", None, None)
    assert row["ttft_s"] > 0
    assert "no time per output token" in row["reason"]


def test_extreme_rows_are_answered(shared: Client) -> None:
    rows = [
        a_question(n_input_token=n_in, n_output_token=n_out, **load)
        for n_in in (1, 1e7)
        for n_out in (1, 1e7)
        for load in ({"concurrency": 1e6}, {"concurrency": None, "request_rate": 1e-9})
    ]
    assert {row["status"] for row in predict(shared, *rows)} <= {"ok", "does_not_fit", "out_of_range", "saturated"}


def test_the_next_measurements_are_ranked(shared: Client) -> None:
    request = {"models": [MODEL], "accelerators": ["l4", "h100-sxm-80gb"], "n": 2}
    answer = shared.answer("/v1/next-measurements", request)
    assert [row["rank"] for row in answer["rows"]] == [1, 2]
    assert {row["accelerator"] for row in answer["rows"]} <= {"nvidia-l4-24gb", "nvidia-h100-sxm-80gb"}
    assert all(0 < row["tpot_s_narrower"] < 1 for row in answer["rows"])
    assert 0 < answer["n_compared"] <= answer["n_setting"]
    problem = problem_of(shared.post("/v1/next-measurements", {"models": ["llama-9"]}), 404)
    assert "no 'llama-9' is known" in problem["detail"]


@pytest.mark.parametrize(
    ("changes", "engine"),
    [
        ({"accelerator": "nvidia-rtx-4090-24gb", "weight_precision": "Q4_K_M"}, "llama.cpp"),
        ({"accelerator": "apple-m4-max-128gb"}, "llama.cpp"),
        ({"accelerator": "apple-m4-max-128gb", "weight_precision": "mlx 6bit"}, "mlx-lm"),
        ({"accelerator": "nvidia-rtx-4090-24gb"}, "other"),
        ({"accelerator": "nvidia-rtx-4090-24gb", "model": "bartowski/Llama-3.1-8B-Instruct-Q6_K-GGUF"}, "llama.cpp"),
        ({"accelerator": "apple-m4-max-128gb", "model": "mlx-community/Llama-3.1-8B-Instruct-6bit"}, "mlx-lm"),
    ],
)
def test_a_blank_engine_is_that_of_the_format_or_the_one_that_runs_there(
    shared: Client, changes: dict[str, Any], engine: str
) -> None:
    question = a_question(**{"engine": "", **changes})
    for blanks in ({}, {"weight_precision": ""}):
        (row,) = predict(shared, blanks | question)
        assert row["status"] == "ok"
        assert f"engine={engine} " in row["assumed"]


def test_stated_bits_of_a_weight_are_kept_beside_copies_and_refused_where_weights_are_whole(shared: Client) -> None:
    copy = a_question(model="Qwen/Qwen3-30B-A3B-FP8", accelerator="nvidia-h100-sxm-80gb")
    few, usual, whole = {**copy, "weight_bit": 5.0}, copy, a_question(weight_bit=5.0)
    alone = [predict(shared, row)[0] for row in (few, usual, whole)]
    other = a_question(model="bartowski/Llama-3.1-8B-Instruct-Q6_K-GGUF")
    together = predict(shared, few, usual, whole, other)[:3]
    for one, beside in zip(alone, together, strict=True):
        assert {name: beside[name] for name in one} == one, "an answer depends on its own row only"
    assert alone[0]["tpot_s"] < alone[1]["tpot_s"]
    assert (alone[2]["status"], alone[2]["tpot_s"]) == ("invalid", None)
    assert alone[2]["reason"].startswith("weight_bit: belongs to weights of eight bits or fewer, and these are bf16")


def test_what_was_measured_stands_beside_the_answer_and_its_stack_is_reached(shared: Client) -> None:
    measured = load_campaigns(["inferencemax"])
    measured = measured[(measured["statistic"] == "mean") & measured["tpot_s"].notna()].iloc[::60]
    rows, truth = rows_from_table(measured[[*INPUT_COLUMNS]]), measured["tpot_s"].to_numpy()
    named, unknown = predict(shared, *rows, stack="inferencex"), predict(shared, *rows)
    known = [i for i, row in enumerate(unknown) if row["observed_stack"] == "inferencex"]
    assert len(known) > max(5, 0.7 * len(rows))
    assert all(unknown[i]["support"] == named[i]["support"] == "measured" for i in known)
    assert all(unknown[i]["observed_date"] for i in known)
    assert np.median([abs(unknown[i]["observed_tpot_s"] / truth[i] - 1) for i in known]) < 0.02
    errors = [np.median([abs(answers[i]["tpot_s"] / truth[i] - 1) for i in known]) for answers in (named, unknown)]
    assert errors[0] < 0.07
    assert errors[0] < errors[1]
    far = predict(shared, a_question(engine="sglang", accelerator="nvidia-a40-48gb"), a_question(tp=7))
    assert [row["support"] for row in far] == ["extrapolated", ""]
    assert far[0]["observed_tpot_s"] is None
