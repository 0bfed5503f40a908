"""Answers without limits or a load: cheapest tokens, a batch by its deadline, throughput, fewest accelerators."""

from typing import Any

import pytest

from tests.serving.http.test_recommendations import PATH
from tests.serving.http_client import MODEL, Client, Run, problem_of

SHAPE = {"n_input_token": 1000, "n_output_token": 200}


def ask(client: Client, workload: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    answer = client.post(PATH, {"model": MODEL, "workload": SHAPE | (workload or {})} | more)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.fixture(scope="module")
def tokens(shared: Client) -> dict[str, Any]:
    return ask(shared, n_entry=30)


@pytest.mark.parametrize(
    "workload", [{"users": 100}, {"request_rate_per_s": 5}, {"users": 100, "think_time_s": 20}, {}]
)
def test_a_missing_limit_is_no_error(shared: Client, workload: dict[str, Any]) -> None:
    answer = ask(shared, workload)
    assert answer["entries"][0]["p_limits_met"] == 1.0


def test_without_a_load_the_cheapest_tokens_come_first(tokens: dict[str, Any]) -> None:
    costs = [one["cost_usd_per_million_token"] for one in tokens["entries"]]
    assert tokens["objective"] == "tokens"
    assert costs == pytest.approx(sorted(costs), rel=1e-4)
    assert (tokens["load"]["users"], tokens["load"]["request_rate_per_s"]) == (None, None)
    assert not tokens["levers"]
    first = tokens["entries"][0]
    rate = first["request_rate_per_replica"] * first["n_replica"]
    assert costs[0] == pytest.approx(first["cost_usd_per_h"] / (rate * 3600) / 1200 * 1e6, rel=0.01)


def test_a_batch_takes_what_serves_it_by_its_deadline(shared: Client, tokens: dict[str, Any]) -> None:
    answer = ask(shared, {"n_batch_request": 1e8, "deadline_h": 60})
    first = answer["entries"][0]
    rate = first["request_rate_per_replica"] * first["n_replica"]
    assert rate * 60 * 3600 >= 1e8 * 0.97
    assert answer["load"]["text"].startswith("100,000,000 requests within 60 hours")
    least = tokens["entries"][0]["cost_usd_per_million_token"]
    assert first["cost_usd_per_million_token"] >= least * 0.97
    assert 0.8 <= first["p_limits_met"] < 1.0, "the throughput is a prediction"
    assert first["batch_h"] < 60
    assert first["batch_usd"] == pytest.approx(first["batch_h"] * first["cost_usd_per_h"], rel=1e-3)
    sure = ask(shared, {"n_batch_request": 1e8, "deadline_h": 60}, confidence=0.95)["entries"][0]
    assert sure["cost_usd_per_h"] >= first["cost_usd_per_h"]
    assert sure["p_limits_met"] >= 0.945, "rates are those of a load that is near"
    limited = ask(shared, {"n_batch_request": 1e8, "deadline_h": 60}, limits=["tpot:p50<=200ms"])["entries"][0]
    assert limited["p_limits_met"] >= 0.8


def test_a_batch_without_a_deadline_takes_the_cheapest_tokens_and_its_time(
    shared: Client, tokens: dict[str, Any]
) -> None:
    answer = ask(shared, {"n_batch_request": 1e7})
    first = answer["entries"][0]
    assert answer["load"]["text"].startswith("10,000,000 requests: ")
    assert first["accelerator"] == tokens["entries"][0]["accelerator"]
    rate = first["request_rate_per_replica"] * first["n_replica"]
    assert first["batch_h"] == pytest.approx(1e7 / rate / 3600, rel=0.03)
    assert tokens["entries"][0]["batch_h"] is None


def test_a_budget_buys_the_highest_throughput(shared: Client) -> None:
    bounds = {"max_usd_per_h": 20.0}
    answers = [ask(shared, constraints=bounds, objective=name) for name in ("throughput", "tokens")]
    rates = [one["request_rate_per_replica"] * one["n_replica"] for one in (a["entries"][0] for a in answers)]
    assert rates[0] >= rates[1]
    assert 10 < answers[0]["entries"][0]["cost_usd_per_h"] <= 20


def test_the_fewest_accelerators_serve_a_load(shared: Client) -> None:
    load = {"request_rate_per_s": 40}
    few, cheap = (ask(shared, load, objective=name)["entries"] for name in ("accelerators", "cost"))
    counts = [[one["n_replica"] * one["tp"] * one["pp"] * one["dp"] for one in entries] for entries in (few, cheap)]
    assert counts[0] == sorted(counts[0])
    assert counts[0][0] <= min(counts[1])


def test_throughput_needs_a_budget_and_no_load(shared: Client) -> None:
    body = {"model": MODEL, "workload": SHAPE, "objective": "throughput"}
    assert "budget" in problem_of(shared.post(PATH, body), 422)["detail"]
    loaded = body | {"workload": SHAPE | {"users": 3}, "constraints": {"max_usd_per_h": 9.0}}
    assert "without a load" in problem_of(shared.post(PATH, loaded), 422)["detail"]


def test_the_command_line_needs_neither_limit_nor_load(run: Run, home: object) -> None:
    status, out, _ = run("recommend", "--model", MODEL, "--isl", "1000", "--osl", "200")
    assert status == 0
    assert "cheapest tokens first" in out
    assert "USD per million tokens" in out
