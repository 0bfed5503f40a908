"""Bulk rows with models by configuration."""

import json
from typing import Any

import httpx
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.serving.http.bulk.chunks import MAX_MODELS, InlineModels
from tests.serving.http.bulk.test_bulk import PATH, lines_of, post, rows_of
from tests.serving.http_client import CONFIG, MODEL, Client, a_question, problem_of

PARQUET = "application/vnd.apache.parquet"
MINE = {"name": "my-14b", "config": CONFIG}


def an_inline(**changes: Any) -> dict[str, Any]:
    return {"name": "my-14b", "config": CONFIG | changes}


def test_a_configuration_replaces_the_name(shared: Client) -> None:
    rows = [a_question(), a_question(model=MINE), a_question(model=MINE, n_input_token=0.5)]
    answers = rows_of(post(shared, lines_of(*rows)))
    body = {"rows": [row | {"model": name} for row, name in zip(rows, [MODEL, *["my-14b"] * 2], strict=True)]}
    expected = shared.post(PATH, body | {"models": [MINE]}).json()["rows"]
    assert answers[:2] == expected[:2]
    assert answers[1]["model"] == "my-14b"
    assert answers[2]["reason"] == f"line 3: {expected[2]['reason']}"
    as_json = post(shared, lines_of(*rows), accept="application/json").json()
    assert as_json["rows"][:2] == expected[:2]


def test_each_row_is_of_its_own_configuration_whatever_its_name(shared: Client) -> None:
    same_name = {"name": MODEL, "config": CONFIG}
    deeper = an_inline(num_hidden_layers=80)
    rows = [a_question(model=model) for model in (MINE, deeper, same_name, MODEL)]
    tpot = [row["tpot_s"] for row in rows_of(post(shared, lines_of(*rows)))]
    assert tpot[1] > 1.3 * tpot[0]
    assert tpot[2] == tpot[0] != tpot[3]
    assert MINE["name"] not in shared.service.catalog.models


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ({"name": "m"}, "model.config: field required; give a name, or {"),
        ({"name": "", "config": CONFIG}, "model.name: string should have at least 1 character"),
        ({"name": "m", "config": CONFIG, "url": "x"}, "model.url: extra inputs are not permitted"),
        ({"name": "m", "config": {}}, "model.config.hidden_size: is missing"),
        (CONFIG, "model.name: field required"),
        ([MINE], "model: must be a number, a text"),
    ],
)
def test_an_invalid_model_affects_its_row_alone(shared: Client, model: Any, reason: str) -> None:
    invalid, valid = rows_of(post(shared, lines_of(a_question(model=model), a_question())))
    assert (invalid["status"], valid["status"]) == ("invalid", "ok")
    assert invalid["reason"].startswith("line 1: ")
    assert reason in invalid["reason"]


def test_the_number_of_configurations_in_a_body_is_limited() -> None:
    models = InlineModels(load_catalog())
    for i in range(MAX_MODELS):
        models.add(an_inline(num_hidden_layers=1 + i))
    models.add(an_inline(num_hidden_layers=1))
    with pytest.raises(InputError, match="model: a body may have at most 100 different configurations"):
        models.add(an_inline(num_hidden_layers=101))


def test_parquet_accepts_names_alone(shared: Client) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def table_of(response: httpx.Response) -> Any:
        return pq.read_table(pa.BufferReader(response.content)).to_pydict()

    table = table_of(post(shared, lines_of(a_question(model=MINE), a_question()), accept=PARQUET))
    assert (table["model"], table["status"]) == (["my-14b", MODEL], ["ok", "ok"])
    text = json.dumps(MINE)
    incomplete = '{"name": "my-14b", "config": {}}'
    for row in ({"model": MINE}, {"model": text + " " * 1000}, {"model": incomplete}, {"model_config": text}):
        buffer = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist([a_question(**row)]), buffer)
        response = shared.send("POST", PATH, buffer.getvalue().to_pybytes(), {"content-type": PARQUET})
        problem = problem_of(response, 422)
        assert problem["field"] == next(iter(row))
        assert "send a model with its configuration as NDJSON" in problem["detail"]
