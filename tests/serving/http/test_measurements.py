from pathlib import Path
from typing import Any

import pytest

from roofcast.serving.app_state.catalog.live_catalog import with_configs
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service
from roofcast.serving.http.app import create_app
from tests.conditions import wait_until
from tests.serving.http_client import CONFIG, MODEL, Client, a_measurement, a_question, problem_of, running

PATH = "/v1/measurements"
MODELS = [{"name": "mine", "config": CONFIG}]


def add(client: Client, *rows: dict[str, Any], **changes: Any) -> dict[str, int]:
    added: dict[str, int] = client.answer(PATH, {"rows": list(rows), **changes}, status=201)
    return {name: added[name] for name in ("n_new", "n_known")}


def test_equal_rows_are_stored_once(client: Client) -> None:
    rows = [a_measurement(), a_measurement(concurrency=32)]
    assert add(client, *rows) == {"n_new": 2, "n_known": 0}
    assert add(client, *rows, a_measurement(concurrency=64)) == {"n_new": 1, "n_known": 2}
    listed = client.get(PATH + "?campaign=nightly&limit=2&offset=1").json()
    assert [row["model"] for row in listed] == [MODEL, MODEL]
    assert client.get(PATH + "?offset=3").json() == []


def test_own_campaigns_are_listed_after_the_shipped_ones(client: Client) -> None:
    add(client, a_measurement(), a_measurement(concurrency=32))
    *shipped, own = client.get("/v1/campaigns").json()
    assert own == {"name": "nightly", "n_row": 2, "licence": "", "source": "imported here"}
    assert all("attribution" in campaign for campaign in shipped)


def test_a_row_without_a_campaign_belongs_to_the_campaign_own(client: Client) -> None:
    add(client, a_measurement(campaign=""), a_measurement(campaign=None, concurrency=1))
    row = a_measurement(concurrency=2)
    del row["campaign"]
    add(client, row)
    assert len(client.get(PATH + "?campaign=own").json()) == 3


def test_names_are_replaced_by_those_of_the_catalogue(client: Client) -> None:
    add(client, a_measurement(model="llama-3.1-8b", accelerator="A100-PCIe-80GB", statistic=""))
    (row,) = client.get(PATH).json()
    assert (row["model"], row["accelerator"], row["statistic"]) == (MODEL, "nvidia-a100-pcie-80gb", "mean")
    assert row["weight_precision"] == ""


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"model": "meta-llama/Llama-3.1-8"}, 422, "model"),
        ({"accelerator": "nvidia-a100-pcie-81gb"}, 422, "accelerator"),
        ({"ttft_s": -1}, 422, "ttft_s"),
        ({"ttft_s": "fast"}, 422, "ttft_s"),
        ({"ttft_s": True}, 422, "ttft_s"),
        ({"ttft_s": 10**400}, 422, "ttft_s"),
        ({"note": "=HYPERLINK(1)"}, 422, "note"),
        ({"note": "@x"}, 422, "note"),
        ({"engine": "+1"}, 422, "engine"),
        ({"model": "-model"}, 422, "model"),
        ({"model": None}, 422, "model"),
        ({"statistic": "p96"}, 422, "statistic"),
        ({"n_accelerator": 1.5}, 422, "n_accelerator"),
        ({"concurrency": None}, 422, "concurrency"),
        ({"ttft_ms": 61}, 422, "ttft_ms"),
        ({"note": ["a"]}, 422, "rows.1.note"),
    ],
)
def test_one_invalid_row_refuses_the_request(
    shared: Client, changes: dict[str, Any], status: int, field: str
) -> None:
    before = shared.get(PATH).json()
    body = {"rows": [a_measurement(), a_measurement(**changes)], "models": MODELS}
    assert problem_of(shared.post(PATH, body), status)["field"] == field
    assert shared.get(PATH).json() == before
    assert "mine" not in shared.service.catalog.models


def test_unknown_names_are_told_with_the_wrong_values_and_their_rows(shared: Client) -> None:
    rows = [
        a_measurement(ttft_s=-1),
        a_measurement(model="meta-llama/Llama-3.1-8", engine="vlm"),
        a_measurement(accelerator="nvidia-a100-pcie-81gb"),
        a_measurement(model="meta-llama/Llama-3.1-8"),
    ]
    problem = problem_of(shared.post(PATH, {"rows": rows}), 422)
    assert [text.partition(", got")[0].partition(" is known")[0] for text in problem["problems"]] == [
        "rows, line 1: ttft_s: must be between 1e-07 and 86400",
        "rows, line 2: model: no 'meta-llama/Llama-3.1-8'",
        "rows, line 3: accelerator: no 'nvidia-a100-pcie-81gb'",
        "rows, line 2: engine: no 'vlm'",
    ]
    assert "did you mean 'meta-llama/Llama-3.1-8B'" in problem["problems"][1]
    assert "send the config.json of a model of your own in `models`" in problem["problems"][1]
    (names,) = [problem_of(shared.post(PATH, {"rows": rows[1:2]}), 422)]
    assert (names["field"], names["did_you_mean"][0]) == ("model", "meta-llama/Llama-3.1-8B")
    many = [a_measurement(model=f"no/{n}") for n in range(60)]
    assert len(problem_of(shared.post(PATH, {"rows": many}), 422)["problems"]) == 21


def test_an_inconsistent_row_is_refused_as_in_an_import(client: Client) -> None:
    inconsistent = a_measurement(statistic="mean", ttft_s=1.0, tpot_s=0.01, e2e_s=9000.0, n_output_token=100)
    problem = problem_of(client.post(PATH, {"rows": [a_measurement(), inconsistent]}), 422)
    assert problem["field"] == "e2e_s"
    assert problem["detail"].startswith("rows, line 2: e2e_s: E2E of 9000 s is far from TTFT + TPOT")
    assert client.get(PATH).json() == []


def test_a_config_in_the_request_registers_its_model(client: Client) -> None:
    body = {"rows": [a_measurement(model="mine")], "models": MODELS}
    assert client.post(PATH, body).status_code == 201
    again = client.post(PATH, body).json()
    assert again.pop("import_id")
    assert (again.pop("drift"), again.pop("drift_url")) == (None, None)
    assert {again.pop(name) for name in ("n_new", "n_claimed", "n_quarantined", "n_withdrawn")} == {0}
    assert again == {"n_known": 1, "n_of_key": {}, "quarantine_reasons": [], "warnings": []}
    assert "mine" in {model["id"] for model in client.get("/v1/models").json()}
    rows = client.post("/v1/predictions", {"rows": [a_question(model="mine")]}).json()["rows"]
    assert rows[0]["status"] == "ok"


def test_a_registered_name_cannot_get_another_config(client: Client) -> None:
    client.post(PATH, {"rows": [a_measurement(model="mine")], "models": MODELS})
    other = [{"name": "new", "config": CONFIG}, {"name": "mine", "config": CONFIG | {"vocab_size": 1000}}]
    body = {"rows": [a_measurement(model="new", concurrency=99)], "models": other}
    assert "it is registered with another config" in problem_of(client.post(PATH, body), 422)["detail"]
    assert len(client.get(PATH).json()) == 1
    assert "new" not in client.service.catalog.models


def test_models_registered_by_another_process_are_known_to_the_next_poll(client: Client, settings: Settings) -> None:
    assert "mine" not in client.service.catalog.models
    other = build_service(settings)
    for spec, config in with_configs(other.catalog, [("mine", CONFIG)])[1]:
        other.store.models.add(spec, dict(config))
    other.store.close()
    wait_until(lambda: "mine" in client.service.catalog.models)


def test_a_key_registers_at_most_half_of_the_models(home: Path) -> None:
    def measured(*names: str) -> dict[str, Any]:
        models = [{"name": name, "config": CONFIG} for name in names]
        return {"rows": [a_measurement()], "models": models}

    with running(create_app(Settings(home=home, poll_s=3600, max_registered_model=4))) as client:
        greedy, other, operator = (client.make_key(scope) for scope in ("write", "write", "admin"))
        client.use_key(greedy)
        assert client.post("/v1/measurements", measured("one", "two")).status_code == 201
        refused = problem_of(client.post("/v1/measurements", measured("three")), 422)
        assert "at most 2 models can be registered by one key" in refused["detail"]
        for key, name in ((other, "three"), (operator, "four")):
            client.use_key(key)
            assert client.post("/v1/measurements", measured(name)).status_code == 201


def test_the_number_of_registered_models_is_limited(home: Path) -> None:
    def measured(*names: str) -> dict[str, Any]:
        models = [{"name": name, "config": CONFIG} for name in names]
        return {"rows": [a_measurement(model=name) for name in names], "models": models}

    with running(create_app(Settings(home=home, poll_s=3600, max_registered_model=2))) as client:
        assert client.post("/v1/measurements", measured("one", "two")).status_code == 201
        assert "at most 2 models" in problem_of(client.post("/v1/measurements", measured("three")), 422)["detail"]
        assert client.post("/v1/measurements", measured("one", "two")).status_code == 201
