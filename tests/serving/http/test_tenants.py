"""Rows of keys apart: over HTTP a key gets its own rows and those of operators, and no name of another key."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from roofcast.serving.app_state.imports import import_report
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.app import create_app
from tests.conftest import QUICK
from tests.data.row_builders import a_training_row
from tests.serving.http.test_app import register_copy
from tests.serving.http_client import CONFIG, MODEL, Client, a_measurement, a_question, problem_of, running

MEASURE, RUNS = "/v1/measurements", "/v1/training/measurements"
MARK = "zq7plan"
"""Part of each name that the key `a` brings: of campaigns, stacks, a model and a profile."""

HIDDEN_MODEL = f"{MARK}/llm"
VIEWERS = ("a", "b", "admin", None)


@dataclass
class Tenants:
    """A service with rows of two keys and an operator; `a` and `b` write, None stands for no key."""

    client: Client
    secrets: dict[str | None, str | None]
    imports: dict[str | None, dict[str, Any]]

    def use(self, viewer: str | None) -> Client:
        self.client.use_key(self.secrets[viewer])
        return self.client

    def get(self, viewer: str | None, path: str) -> Any:
        response = self.use(viewer).get(path)
        assert response.status_code == 200, response.text
        return response.json()


def post(client: Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    return dict(client.answer(path, body, status=201))


@contextmanager
def serving(home: Path, *, share_rows: bool = False) -> Iterator[Tenants]:
    settings = Settings(home=home, training=QUICK, poll_s=3600, share_rows=share_rows)
    with pytest.MonkeyPatch.context() as patch, running(create_app(settings)) as client:
        patch.setattr(import_report, "TRAINED_ON", ("llm_pilot",))
        secrets: dict[str | None, str | None] = {name: client.make_key("write", name=name) for name in ("a", "b")}
        secrets |= {"admin": client.make_key("admin", name="boss"), None: None}
        tenants = Tenants(client, secrets, {})
        names = {"a": MARK, "b": "lab", "admin": "house"}
        models = {"a": HIDDEN_MODEL, "b": "lab/llm", "admin": "house/llm"}
        for n, (viewer, name) in enumerate(names.items(), 1):
            tenants.use(viewer)
            row = a_measurement(model=models[viewer], campaign=name, stack=f"{name}/rig", concurrency=n)
            config = CONFIG | {"num_hidden_layers": 20 if viewer == "admin" else 41}
            body = {"rows": [row], "models": [{"name": models[viewer], "config": config}]}
            tenants.imports[viewer] = post(client, MEASURE, body)
            post(client, f"{RUNS}?compare=false", {"rows": [a_training_row(campaign=name)]})
            run = {"model": models[viewer], "accelerator": row["accelerator"], "concurrency": n, "tpot_s": 0.06}
            run |= {"n_input_token": 120, "n_output_token": 20}
            post(client, "/v1/stacks", {"name": f"{name}-rack", "rows": [run]})
        yield tenants


@pytest.fixture(scope="module")
def tenants(trained_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    home = Path(shutil.copytree(trained_home, tmp_path_factory.mktemp("tenants") / "home"))
    with serving(home) as tenants:
        yield tenants


def names_of(key: str) -> Callable[[Any], set[str]]:
    return lambda rows: {str(row[key]) for row in rows}


SEEN: dict[str | None, set[str]] = {
    "a": {MARK, "house"}, "b": {"lab", "house"}, "admin": {MARK, "lab", "house"}, None: {"house"},
}  # fmt: skip


@pytest.mark.parametrize("viewer", VIEWERS)
@pytest.mark.parametrize(
    ("path", "name"),
    [(MEASURE, "campaign"), (RUNS, "campaign"), ("/v1/campaigns/report", "campaign"), ("/v1/campaigns", "name")],
)
def test_lists_have_the_rows_of_the_key_and_of_operators(
    tenants: Tenants, path: str, name: str, viewer: str | None
) -> None:
    own = {str(row[name]) for row in tenants.get(viewer, path) if row[name] in SEEN["admin"]}
    assert own == SEEN[viewer]


@pytest.mark.parametrize("viewer", VIEWERS)
def test_imports_campaigns_models_and_drift_are_of_the_same_rows(tenants: Tenants, viewer: str | None) -> None:
    key_of = {MARK: "a", "lab": "b", "house": "boss"}
    seen = SEEN[viewer]
    imports = tenants.get(viewer, f"{MEASURE}/imports")
    assert {one["key"] for one in imports} == {key_of[name] for name in seen}
    assert {one["target"] for one in imports} == {"inference", "training"}
    assert tenants.get(viewer, "/v1/drift?days=1")["n_row"] == len(seen)
    models = {one["id"] for one in tenants.get(viewer, "/v1/models")}
    assert {f"{name}/llm" for name in seen} == models & {f"{name}/llm" for name in key_of}
    assert MODEL in models
    for name, owner in key_of.items():
        status = 200 if name in seen else 404
        import_id = tenants.imports["admin" if owner == "boss" else owner]["import_id"]
        assert tenants.use(viewer).get(f"/v1/campaigns/{name}/measurements").status_code == status
        assert tenants.use(viewer).get(f"/v1/drift?import_id={import_id}").status_code == status


def test_an_import_of_another_key_answers_as_an_unknown_one(tenants: Tenants) -> None:
    hidden, unknown = tenants.imports["a"]["import_id"], "f" * 32
    client = tenants.use("b")

    def answers(import_id: str) -> list[str]:
        paths = [f"{MEASURE}/{verb}" for verb in ("withdrawals", "restorations", "confirmations")]
        responses = [client.get(f"/v1/drift?import_id={import_id}")]
        responses += [client.post(path, {"import_id": import_id}) for path in paths]
        return [re.sub(r'"request_id":"[^"]*"', "", one.text).replace(import_id, "ID") for one in responses]

    assert answers(hidden) == answers(unknown)
    for selection in ({"campaign": MARK}, {"key": "a"}):
        problem_of(client.post(f"{MEASURE}/withdrawals", selection), 404)
    of_operator = {"import_id": tenants.imports["admin"]["import_id"]}
    problem_of(client.post(f"{MEASURE}/withdrawals", of_operator), 403)
    assert tenants.get("a", f"/v1/drift?import_id={hidden}")["n_row"] == 1


def test_no_get_route_names_what_another_key_brought(tenants: Tenants) -> None:
    version = register_copy(tenants.client.service)
    retraining = tenants.client.service.store.retrainings.add("owner").id
    values = {"version": [version], "retraining_id": [retraining], "name": [MARK, "lab", f"{MARK}-rack", "lab-rack"]}
    queries = {"/v1/drift": ["", f"?import_id={tenants.imports['b']['import_id']}"]}
    queries |= {path: ["", "?limit=1000", f"?campaign={MARK}"] for path in (MEASURE, RUNS)}
    routes = [path for path, operations in tenants.client.app.openapi()["paths"].items() if "get" in operations]
    assert {"/v1/predictor/versions/{version}/comparison", "/v1/campaigns/{name}/measurements", "/metrics"} <= {
        *routes
    }
    named = set()
    for route in routes:
        (parameter,) = re.findall(r"{(\w+)}", route) or [""]
        paths = [route.replace(f"{{{parameter}}}", value) for value in values.get(parameter, [""])]
        for path in (path + query for path in paths for query in queries.get(route, [""])):
            echoes = {json.dumps(value)[1:-1] for value in values["name"] if value in path}
            for viewer in ("b", None):
                response = tenants.use(viewer).get(path)
                text = response.text
                if response.status_code == 404:
                    for echo in sorted(echoes, key=len, reverse=True):
                        text = text.replace(echo, "")
                assert MARK not in text, (viewer, path, text[:500])
            for viewer in ("a", "admin"):
                response = tenants.use(viewer).get(path)
                if response.status_code == 200 and MARK in response.text:
                    named.add((viewer, route))
    lists = (
        MEASURE,
        RUNS,
        "/v1/campaigns",
        "/v1/campaigns/report",
        "/v1/campaigns/{name}/measurements",
        "/v1/models",
    )
    assert {(viewer, route) for viewer in ("a", "admin") for route in lists} <= named


def test_no_error_and_no_lineage_names_the_model_of_another_key(tenants: Tenants) -> None:
    near = HIDDEN_MODEL.replace("llm", "lm")
    client = tenants.use("b")
    for path, body in (
        ("/v1/predictions", {"rows": [a_question(model=near)]}),
        (MEASURE, {"rows": [a_measurement(model=near)]}),
        (RUNS, {"rows": [a_training_row(model=near)]}),
    ):
        assert MARK not in client.post(path, body).text.replace(near, ""), path
    assert MARK not in client.send("DELETE", f"/v1/models/{MODEL}").text
    own = next(one for one in tenants.get("b", "/v1/models") if one["id"] == "lab/llm")
    assert own["lineage"] == "lab/llm"
    answer = tenants.use("b").post("/v1/predictions", {"rows": [a_question(model="lab/llm")]}).json()
    assert answer["rows"][0]["status"] == "ok"


def test_rows_of_two_keys_teach_one_predictor(tenants: Tenants) -> None:
    learnable = tenants.client.service.store.load_learnable()
    assert set(learnable.uploaders) == {"a", "b", ""}


def test_a_key_sees_its_claim_to_a_row_that_another_stored_first(client: Client) -> None:
    for name in ("first", "second"):
        client.use_key(client.make_key("write", name=name))
        post(client, MEASURE, {"rows": [a_measurement()]})
    (row,) = client.get(MEASURE).json()
    assert (row["key"], row["state"]) == ("second", "accepted")
    assert client.post(f"{MEASURE}/withdrawals", {"key": "second"}).json()["n_row"] == 1
    assert [row["state"] for row in client.get(MEASURE).json()] == ["withdrawn"]
    assert client.get("/v1/campaigns/report").json() == []


def test_a_model_in_use_by_another_key_is_refused_without_its_campaigns(client: Client) -> None:
    names = {"first": "plan", "second": "other"}
    secrets = {key: client.make_key("write", name=key) for key in names}
    body = {"models": [{"name": "mine/one", "config": CONFIG}]}
    for key, campaign in names.items():
        client.use_key(secrets[key])
        post(client, MEASURE, body | {"rows": [a_measurement(model="mine/one", campaign=campaign)]})
    client.use_key(secrets["first"])
    assert client.post(f"{MEASURE}/withdrawals", {"key": "first"}).json()["n_row"] == 1
    detail = problem_of(client.send("DELETE", "/v1/models/mine/one"), 422)["detail"]
    assert detail.endswith("other keys have measurements of inference of it; ask an operator")


def test_shared_rows_are_seen_by_everyone(home: Path) -> None:
    with serving(home, share_rows=True) as tenants:
        for viewer in VIEWERS:
            assert names_of("campaign")(tenants.get(viewer, MEASURE)) == SEEN["admin"]
            assert HIDDEN_MODEL in names_of("id")(tenants.get(viewer, "/v1/models"))
        import_id = tenants.imports["a"]["import_id"]
        assert tenants.get(None, f"/v1/drift?import_id={import_id}")["n_row"] == 1
        problem = problem_of(tenants.use("b").post(f"{MEASURE}/withdrawals", {"import_id": import_id}), 403)
        assert problem["field"] == "import_id"
