"""One module chooses the statuses of errors, whatever their cause."""

import ast
import errno
from http import HTTPStatus
from pathlib import Path

import pytest

import roofcast.serving.http.problem_details as module
from roofcast.data.errors import RoofcastError
from roofcast.serving.http.problem_details import BUG, CLIENT_CLOSED, STATUS_OF, error_response
from tests.serving.http_client import Client, problem_of

SERVING = Path(module.__file__).parents[1]
ERRORS = range(400, 600)
NAMES = {status.name for status in HTTPStatus if status in ERRORS}


def statuses(path: Path) -> list[str]:
    """Return the places in a module that name a status of an error."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in NAMES]
    raised = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "HTTPException"]
    numbers = [
        each.value
        for each in ast.walk(tree)
        if isinstance(each, ast.keyword) and each.arg == "status_code" and isinstance(each.value, ast.Constant)
        if each.value.value in ERRORS
    ]
    return [f"{path.name}:{node.lineno}" for node in (*named, *raised, *numbers)]


def test_no_other_module_names_the_status_of_an_error() -> None:
    places = [place for path in SERVING.rglob("*.py") if path != Path(module.__file__) for place in statuses(path)]
    assert places == []
    assert len(statuses(Path(module.__file__))) > 15


def test_every_error_of_roofcast_has_a_status() -> None:
    def leaves(error: type[RoofcastError]) -> set[type[RoofcastError]]:
        inner = error.__subclasses__()
        return {error} if not inner else {leaf for each in inner for leaf in leaves(each)}

    without = {leaf for leaf in leaves(RoofcastError) if not any(issubclass(leaf, each) for each, _, _ in STATUS_OF)}
    assert {each.__name__ for each in without} <= {"RefusedError"}
    assert {CLIENT_CLOSED, BUG} <= {*ERRORS}
    with pytest.raises(RoofcastError, match="a bug"):
        error_response(RoofcastError("a bug"))


@pytest.mark.parametrize(("number", "status"), [(errno.ENOSPC, 503), (errno.EDQUOT, 503), (errno.EACCES, 500)])
def test_a_full_disk_is_no_bug(shared: Client, number: int, status: int) -> None:
    def fail() -> None:
        raise OSError(number, "a fault")

    shared.app.add_api_route(f"/fault-{number}", fail, include_in_schema=False)
    response = shared.get(f"/fault-{number}")
    assert ("full" in problem_of(response, status)["detail"]) == (status == 503)
