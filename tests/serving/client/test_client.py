"""The Python client, against the application and against its OpenAPI document."""

import inspect
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import httpx
import pytest
from pydantic import TypeAdapter
from typing_extensions import is_typeddict

from codegen.client_build import CONTRACT, contract_of
from roofcast.client import AsyncClient, Client, answers, blocking, bulk, requests
from roofcast.client.bulk import MAX_JSON_ROW
from roofcast.data.campaigns import FIRST_CAMPAIGNS
from roofcast.serving.app_state.imports import import_report
from roofcast.serving.jobs.job_messages import EXAMPLE_JOB
from tests.data.row_builders import SAMPLES, a_training_row
from tests.serving.http_client import CONFIG, a_demand, a_measurement, a_question
from tests.serving.http_client import Client as Bridge
from tests.serving.stacks.test_profiles import a_run

Json = dict[str, Any]

TYPES = {name: kind for name, kind in (vars(requests) | vars(answers)).items() if is_typeddict(kind)}
GUIDELLM = SAMPLES / "guidellm" / "rate.json"
ABOUT = {"model": "llama-3.1-8b", "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": 1}
RENAMED = {"reference": "references", "set": "values", "format": "format_"}
REQUEST = re.compile(r"""\b(get|post|put|delete|upload|Call)\((?:"([A-Z]+)", )?f?"(/[^"]*)""")
"""The request in the source of a method: its verb, and its path with an expression for each parameter."""


def request_of(verb: str, path: str) -> tuple[str, str]:
    """Return verb and path without the names of its parameters."""
    return {"upload": "post"}.get(verb, verb).upper(), re.sub(r"\{[^}]*\}", "{}", path)


METHODS = {("POST", "/v1/predictions"): "predict"} | {
    request_of(found[2] or found[1], found[3]): name
    for name, method in vars(Client).items()
    if inspect.isfunction(method) and (found := REQUEST.search(inspect.getsource(method)))
}
"""Name of the method for each request; that of `predict` is made in `bulk`."""


class Wire(httpx.BaseTransport):
    """Transport to an application in another thread's event loop."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        answer = self._bridge.send(request.method, path, request.read(), dict(request.headers))
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


@pytest.fixture(scope="module")
def client(shared: Bridge) -> Iterator[Client]:
    with Client("http://test", shared.make_key("admin"), transport=Wire(shared)) as client:
        yield client


def parameters_of(method: Callable[..., Any]) -> set[str]:
    names: set[str] = set()
    for name, parameter in list(inspect.signature(method).parameters.items())[1:]:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            request = re.search(r"Unpack\[requests\.(\w+)\]", str(parameter.annotation))
            assert request
            names |= set(TYPES[request[1]].__annotations__)
        else:
            names.add(name)
    return names


def test_every_operation_has_a_method_with_its_parameters(shared: Bridge) -> None:
    document = shared.app.openapi()
    assert shared.app.openapi() is document
    schemas = document["components"]["schemas"]
    operations = {
        request_of(verb, path): operation
        for path, verbs in document["paths"].items()
        for verb, operation in verbs.items()
    }
    assert operations.keys() == METHODS.keys()
    for request, operation in operations.items():
        expected = {RENAMED.get(p["name"], p["name"]) for p in operation.get("parameters", [])}
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]
            schema = content.get("application/json", next(iter(content.values())))["schema"]
            is_file = schema.get("format") == "binary"
            expected |= {"file"} if is_file else set(schemas[schema["$ref"].rpartition("/")[2]]["properties"])
        for kind in (Client, AsyncClient):
            assert parameters_of(getattr(kind, METHODS[request])) == expected, request


def test_the_types_are_those_of_the_openapi_document(shared: Bridge) -> None:
    schemas = shared.app.openapi()["components"]["schemas"]
    assert set(TYPES) == set(schemas), "run `make client`"
    for name, schema in schemas.items():
        hints = get_type_hints(TYPES[name], include_extras=True)
        assert list(hints) == list(schema.get("properties", {})), f"{name}: run `make client`"
        optional = {field for field, hint in hints.items() if "NotRequired[" in str(hint)[:30]}
        assert optional == set(hints) - set(schema.get("required", [])), f"{name}: run `make client`"


def test_the_contract_is_that_of_the_service(shared: Bridge) -> None:
    assert CONTRACT.read_text(encoding="utf-8") == contract_of(shared.app.openapi()), "run `make client`"


def check_type(method: Callable[..., Any], answer: Any) -> None:
    """Check an answer against the return type of its method."""
    hint = inspect.signature(method).return_annotation.removesuffix(" | pd.DataFrame")
    TypeAdapter(eval(hint, {**vars(blocking), **TYPES})).validate_python(answer)  # noqa: S307  (our own signatures)


def a_training_file(folder: Path) -> Path:
    file, row = folder / "jobs.csv", a_training_row()
    file.write_text(f"{','.join(row)}\n{','.join(map(str, row.values()))}\n")
    return file


@pytest.mark.slow
def test_each_answer_has_the_return_type_of_its_method(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_report, "TRAINED_ON", ("llm_pilot",))

    def remove_model() -> Any:
        client.add_stack(name="typed", rows=[a_run()], models=[{"name": "mine/one", "config": CONFIG}])
        return client.remove_model("mine/one")

    calls: dict[str, Callable[[], Any]] = {
        "recommend": lambda: client.recommend(**a_demand(n_entry=2)),
        "predict": lambda: client.predict([a_question()]),
        "explain": lambda: client.explain(rows=[a_question()]),
        "add_measurements": lambda: client.add_measurements(rows=[a_measurement()]),
        "campaign_report": client.campaign_report,
        "import_file": lambda: client.import_file(GUIDELLM, values=ABOUT, dry_run=True),
        "measure_next": lambda: client.measure_next(
            models=["meta-llama/Llama-3.1-8B"], accelerators=["l40s-48gb", "h100-sxm-80gb"], n=1
        ),
        "add_training_measurements": lambda: client.add_training_measurements(rows=[a_training_row()]),
        "import_training_file": lambda: client.import_training_file(a_training_file(tmp_path), dry_run=True),
        "training_measurements": lambda: client.training_measurements(limit=1),
        "measurements": lambda: client.measurements(limit=1),
        "imports": client.imports,
        "confirm_measurements": lambda: client.confirm_measurements(campaign="nightly"),
        "withdraw_measurements": lambda: client.withdraw_measurements(campaign="nightly"),
        "restore_measurements": lambda: client.restore_measurements(campaign="nightly"),
        "add_stack": lambda: client.add_stack(name="typed", rows=[a_run()]),
        "stacks": client.stacks,
        "measured_stacks": client.measured_stacks,
        "drift": client.drift,
        "stack": lambda: client.stack("typed", n_next=1),
        "remove_stack": lambda: client.remove_stack("typed"),
        "retrainings": client.retrainings,
        "retraining_schedule": client.retraining_schedule,
        "remove_model": remove_model,
        "predict_training": lambda: client.predict_training(rows=[EXAMPLE_JOB]),
        "recommend_training": lambda: client.recommend_training(
            model="meta-llama/Llama-3.1-8B", method="qlora", n_token=1e7, constraints={"accelerators": ["l40s-48gb"]}
        ),
        "models": client.models,
        "accelerators": client.accelerators,
        "offers": client.offers,
        "campaigns": client.campaigns,
        "campaign_rows": lambda: client.campaign_rows(FIRST_CAMPAIGNS[0], limit=2),
        "choices": client.choices,
        "predictor": client.predictor,
        "scoreboard": client.scoreboard,
        "versions": client.versions,
        "changes": client.changes,
        "ready": client.ready,
        "health": client.health,
        "metrics": client.metrics,
    }
    of_the_registry = {"retrain", "retraining", "cancel_retraining", "promote", "roll_back"}
    of_a_challenger = {"shadow", "challenger", "withdraw_challenger", "compare_version"}
    assert set(calls) == set(METHODS.values()) - of_the_registry - of_a_challenger
    for name, call in calls.items():
        answer = call()
        assert answer or name == "retrainings", name
        check_type(getattr(Client, name), answer)


def test_the_answer_of_a_row_does_not_depend_on_the_number_of_rows(client: Client) -> None:
    rows = [a_question(concurrency=1 + i) for i in range(MAX_JSON_ROW + 1)]
    many, few = client.predict(rows, level=0.6), client.predict(rows[:3], level=0.6)
    assert many["rows"][:3] == few["rows"]
    assert (many["level"], many["predictor_version"]) == (0.6, few["predictor_version"])
    assert len(many["rows"]) == len(rows)


def test_models_and_references_are_sent_with_each_part(client: Client) -> None:
    rows = [a_question(model="mine")] * (MAX_JSON_ROW + 1)
    answer = client.predict(rows, models=[{"name": "mine", "config": CONFIG}])
    assert {row["status"] for row in answer["rows"]} == {"ok"}
    reference = {name: value for name, value in a_measurement().items() if name != "campaign"}
    (row,) = client.predict([a_question()], references=[reference])["rows"]
    assert "ttft_s_uncalibrated" in row


@pytest.mark.parametrize("n_row", [2, 5001])
def test_a_table_is_answered_with_a_table(client: Client, n_row: int) -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame([a_question()] * n_row).assign(concurrency=range(1, n_row + 1))
    answers = client.predict(table, level=0.5)
    assert list(answers.columns[: len(table.columns)]) == list(table.columns)
    assert answers["concurrency"].tolist() == table["concurrency"].tolist()
    assert set(answers["status"]) == {"ok"}


@pytest.mark.parametrize("n_row", [2, 5001])
def test_a_table_with_a_blank_column_of_texts_is_answered(client: Client, n_row: int) -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame([a_question()] * n_row).assign(engine_version=float("nan"), tp=[1.0, *[None] * (n_row - 1)])
    assert set(client.predict(table)["status"]) == {"ok"}


@pytest.mark.parametrize("min_parquet_row", [0, 100])
def test_rows_and_tables_over_one_bulk_request_are_sent_in_parts(
    client: Client, monkeypatch: pytest.MonkeyPatch, min_parquet_row: int
) -> None:
    pd = pytest.importorskip("pandas")
    monkeypatch.setattr(bulk, "MAX_BULK_ROW", 2)
    monkeypatch.setattr(bulk, "MAX_JSON_ROW", 2)
    monkeypatch.setattr(bulk, "MIN_PARQUET_ROW", min_parquet_row)
    rows = [
        a_question(concurrency=n, engine=engine) for n, engine in enumerate(["vllm", "tgi", "vllm", None, "tgi"], 1)
    ]
    answers = client.predict(rows)["rows"]
    assert [row["concurrency"] for row in answers] == [1, 2, 3, 4, 5]
    assert answers[1]["reason"] == answers[4]["reason"]
    assert "line" not in str(answers[4]["reason"])
    table = client.predict(pd.DataFrame(rows))
    assert table.index.tolist() == [0, 1, 2, 3, 4]
    assert table["reason"].tolist() == [row["reason"] for row in answers]
    assert table["ttft_s"].tolist() == pytest.approx([row["ttft_s"] or math.nan for row in answers], nan_ok=True)


def test_the_numbers_of_a_table_are_returned_with_all_digits(client: Client) -> None:
    pd = pytest.importorskip("pandas")
    exact = [0.1 + 0.2, 1 / 3, 12345.678901234567]
    table = pd.DataFrame([a_question()] * 3).assign(concurrency=exact)
    assert client.predict(table)["concurrency"].tolist() == exact
    assert client.predict(table.astype(object))["concurrency"].tolist() == exact


def test_an_invalid_table_is_not_sent() -> None:
    pd = pytest.importorskip("pandas")
    with Client(transport=httpx.MockTransport(lambda _: httpx.Response(500))) as client:
        with pytest.raises(ValueError, match="no row to predict"):
            client.predict(pd.DataFrame(columns=["model", "accelerator"]))
        with pytest.raises(ValueError, match="given twice"):
            client.predict(pd.DataFrame([["a", "b"]], columns=["model", "model"]))


def test_the_asynchronous_client_answers(shared: Bridge) -> None:
    answers: list[Any] = []

    async def ask() -> None:
        transport = httpx.ASGITransport(app=shared.app)
        async with AsyncClient("http://test", transport=transport) as client:
            answers.append(await client.predict([a_question()]))
            answers.append(await client.ready())

    shared.run(ask)
    assert answers[0]["rows"][0]["status"] == answers[1]["predictor_version"].replace("1", "ok")


def test_the_client_imports_nothing_heavy() -> None:
    code = "import sys, roofcast.client; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    loaded = set(done.stdout.split())
    assert not loaded & {"numpy", "pandas", "xgboost", "mlflow", "sklearn", "fastapi", "sqlalchemy", "pyarrow"}


def test_wait_for_retraining_polls_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    states = iter(["queued", "running", "done", "running"])
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json={"id": "1", "state": next(states)}))
    with Client(transport=transport) as client:
        assert client.wait_for_retraining("1", poll_s=0)["state"] == "done"
        with pytest.raises(TimeoutError, match="is running after"):
            client.wait_for_retraining("1", timeout_s=-1)
