"""Recommendations for request rates and thinking users: shares of replicas, the Pareto front, the printed answer."""

import numpy as np
import pytest

from roofcast.serving.composition import Service
from roofcast.serving.recommend import recommendation as recommending
from roofcast.serving.recommend.demand.constraints import Constraints
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.demand.slo import parse_limit
from roofcast.serving.recommend.search.configurations import describe_replicas, enumerate_replicas, replica_table
from roofcast.serving.recommend.search.evaluation import Evaluator
from tests.builders import a_model
from tests.serving.http.test_predictions import predict
from tests.serving.http.test_recommendations import PATH, metric, recommend
from tests.serving.http_client import MODEL, Client, a_demand, problem_of
from tests.serving.recommend.test_recommender import Market

LONG = {"n_input_token": 8000, "n_output_token": 100, "request_rate_per_s": 100}


def test_each_replica_serves_its_share_of_a_rate(shared: Client) -> None:
    entries = recommend(shared, model=MODEL, workload=LONG, limits=["ttft:p95<=5s"])["entries"]
    assert entries
    rows = [
        {
            "model": MODEL,
            "accelerator": entry["accelerator"],
            "engine": entry["engine"],
            "weight_precision": entry["weight_precision"],
            "n_accelerator": entry["tp"] * entry["pp"] * entry["dp"],
            "tp": entry["tp"],
            "pp": entry["pp"],
            "n_input_token": 8000,
            "n_output_token": 100,
            "request_rate": 100 / entry["n_replica"],
            "n_request": 1e9,
            "statistic": "p95",
        }
        for entry in entries
    ]
    for entry, answer in zip(entries, predict(shared, *rows), strict=True):
        assert answer["status"] == "ok", answer["reason"]
        assert entry["p_limits_met"] >= 0.75
        predicted = metric(entry, "ttft_s", "p95")["value"]
        assert predicted == pytest.approx(answer["ttft_s"], rel=1e-5)
        assert 0 < entry["load_per_replica"] <= entry["in_flight_per_replica"]
        assert entry["users_per_replica"] is None
        assert entry["p_runs"] is None or 0 < entry["p_runs"] <= 1


@pytest.mark.parametrize("users", [1, 3, 50, 700])
@pytest.mark.parametrize("think_time_s", [0.0, 3.0, 300.0])
def test_replicas_serve_what_the_users_send(service: Service, users: float, think_time_s: float) -> None:
    limits = (parse_limit("e2e:mean<=20s"), parse_limit("tpot:p50<=60ms"))
    demand = Demand(500, 100, users, None, limits, think_time_s=think_time_s, headroom=0.2)
    result = recommending.recommend(service.active_model.bundle, a_model(), Market(), demand, n_entry=4)
    assert result.entries
    for entry in result.entries:
        e2e_s = next(m.value for m in entry.predictions if (m.metric, m.statistic) == ("e2e_s", "mean"))
        share = users / entry.n_replica
        waiting = share * e2e_s / (e2e_s + think_time_s)
        assert entry.load_per_replica <= max(np.ceil(share), 1)
        assert entry.load_per_replica <= entry.in_flight_per_replica
        assert entry.load_per_replica == pytest.approx(waiting if think_time_s else np.ceil(share), rel=0.1)


@pytest.mark.parametrize(
    "load",
    [{"users": 400.0, "think_time_s": 5.0}, {"users": 400.0}, {"users": 2.0, "think_time_s": 60.0}, {"rate": 9.0}],
)
def test_the_front_has_load_latency_and_cost_of_each_replica(service: Service, load: dict[str, float]) -> None:
    users, rate, think_time_s = load.get("users"), load.get("rate"), load.get("think_time_s", 0.0)
    demand = Demand(500, 100, users, rate, (parse_limit("tpot:p50<=60ms"),), think_time_s=think_time_s)
    bundle = service.active_model.bundle
    result = recommending.recommend(bundle, a_model(), Market(), demand)
    assert result.pareto
    costs, latencies = zip(*((point.cost_usd_per_h, point.e2e_s) for point in result.pareto), strict=True)
    assert list(costs) == sorted(costs)
    assert list(latencies) == sorted(latencies, reverse=True)
    table = replica_table([point.replica for point in result.pareto], a_model(), demand, Constraints())
    evaluator = Evaluator(
        bundle.predictor, describe_replicas(table, a_model(), Market().accelerators), is_open=bool(rate)
    )
    share = np.array([demand.peak_load / point.n_replica for point in result.pareto])
    in_flight = np.array([point.load_per_replica for point in result.pareto])
    loads = share if rate else np.maximum(in_flight, 1.0)
    rows = np.arange(len(share))
    _, means = evaluator.estimate(rows, loads, ())
    predicted = evaluator.predict(rows, loads, [("e2e_s", "p50"), ("e2e_s", "mean")], means)
    assert latencies == pytest.approx(np.exp(predicted["e2e_s", "p50"].log_value))
    mean_s = np.exp(predicted["e2e_s", "mean"].log_value)
    expected = (
        share * mean_s if rate else share * mean_s / (mean_s + think_time_s) if think_time_s else np.ceil(share)
    )
    assert in_flight == pytest.approx(expected, rel=0.1)
    for point in result.pareto:
        assert point.cost_usd_per_h == pytest.approx(point.n_instance * float(point.offer.price_usd_per_h))


def test_recommendations_are_of_a_steady_state() -> None:
    market, model, demand = Market(), a_model(), Demand(500, 100, 50, None, ())
    replicas, _ = enumerate_replicas(model, market.accelerators, market.offers)
    table = replica_table(replicas, model, demand, Constraints())
    assert np.isposinf(describe_replicas(table, model, market.accelerators)["workload.n_wave"]).all()


def test_engine_names_ignore_case(shared: Client) -> None:
    entries = recommend(shared, constraints={"engines": ["vLLM", "SGLang"]})["entries"]
    assert {entry["engine"] for entry in entries} <= {"vllm", "sglang"}
    assert {entry["engine"] for entry in recommend(shared, constraints={"engine": "TGI"})["entries"]} == {"tgi"}
    problem_of(shared.post(PATH, a_demand(constraints={"engine": "nosuch"})), 404)
