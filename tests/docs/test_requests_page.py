"""The page of requests shows the answer as it is, and each constraint with an example that is accepted."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roofcast.data.measurements.schema import ACCEPTANCES
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.app import create_app
from roofcast.serving.recommend.api.request import ConstraintsRequest
from tests.docs.pages import PAGES, blocks
from tests.serving.http_client import Client, running

PAGE = "docs/reference/requests.md"


@pytest.fixture(scope="module")
def client(trained_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    home = Path(shutil.copytree(trained_home, tmp_path_factory.mktemp("requests") / "home"))
    with running(create_app(Settings(home=home, poll_s=3600))) as opened:
        yield opened


def shape(value: Any) -> Any:
    """Return the structure of a JSON value: names without figures."""
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else type(value).__name__ != "NoneType"


def test_the_answer_has_the_structure_that_the_page_shows(client: Client) -> None:
    curl = next(block for block in blocks(PAGE, "sh") if "/v1/recommendations" in block)
    request = json.loads(curl.partition("-d '")[2].rpartition("'")[0])
    response = client.post("/v1/recommendations", request)
    assert response.status_code == 200
    shown = json.loads(blocks(PAGE, "json")[0])
    answered = response.json()
    assert list(shown) == list(answered)
    assert shape(shown["entries"][0]["predictions"][0]) == shape(answered["entries"][0]["predictions"][0])
    assert list(shown["entries"][0]) == list(answered["entries"][0])


def test_each_constraint_has_an_example() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \| \S", PAGES[PAGE].partition("## Constraints")[2], re.MULTILINE)
    assert [name for name, _ in rows] == list(ConstraintsRequest.model_fields)
    for name, example in rows:
        needs = {"speculation": ["eagle"]} if name in {"n_speculative_token", *ACCEPTANCES, "draft_model"} else {}
        assert ConstraintsRequest.model_validate({**needs, name: json.loads(example)})


@pytest.mark.parametrize(("wrong", "right"), [("precisions", "weight_precisions"), ("max_node", "max_nodes")])
def test_the_error_of_a_wrong_field_names_the_right_one(client: Client, wrong: str, right: str) -> None:
    problem = client.post("/v1/recommendations", {"constraints": {wrong: 1}}).json()
    assert (problem["field"], problem["did_you_mean"][0]) == (f"constraints.{wrong}", right)


def test_the_readiness_has_the_fields_that_the_page_of_operation_shows(client: Client) -> None:
    shown = json.loads(blocks("docs/OPERATION.md", "json")[0])
    answered = client.get("/readyz").json()
    assert list(shown) == list(answered)
    assert list(shown["checks"]) == list(answered["checks"])
    assert list(shown["checks"]["store"]) == list(answered["checks"]["store"])
