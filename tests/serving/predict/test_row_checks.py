from typing import Any

import numpy as np
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import near_misses
from roofcast.serving.predict import row_checks
from roofcast.serving.predict.question_rows import Problem
from roofcast.serving.predict.row_checks import MAX_SUGGESTION, check_rows
from tests.serving.http_client import MODEL, a_question


def problems_of(name: str, cells: list[str], **options: Any) -> list[Problem | None]:
    """Return the problems of questions that differ in one cell."""
    rows = [a_question(**{name: cell}) for cell in cells]
    columns = {column: np.array([row[column] for row in rows], dtype=object) for column in rows[0]}
    return check_rows(columns, load_catalog(), **options)[1]


def test_similar_names_are_looked_up_for_few_rows_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 3 * MAX_SUGGESTION
    names = [*(f"{MODEL}-{i}" for i in range(n)), MODEL]
    looked_up: list[str] = []

    def look_up(name: str, *_: object) -> list[str]:
        looked_up.append(name)
        return ["similar"]

    monkeypatch.setattr("roofcast.data.errors.near_misses", look_up)
    problems = problems_of("model", names)
    assert looked_up == names[:MAX_SUGGESTION]
    assert [problem and problem.status for problem in problems] == ["unknown_name"] * n + [None]
    assert "did you mean" in str(problems[0])
    assert str(problems[n - 1]) == f"model: no {names[n - 1]!r} is known; {row_checks.NO_MORE_SUGGESTIONS}"


def test_nothing_is_similar_to_an_endless_name() -> None:
    assert near_misses("llama" * 100, ["llama"]) == []


def test_an_unknown_engine_has_a_cure_also_without_a_suggestion() -> None:
    known, *unknown = problems_of("engine", ["other", *(f"acme-{i}" for i in range(MAX_SUGGESTION + 1))], engines=())
    assert known is None
    assert str(unknown[0]).startswith("engine: no 'acme-0' is known")
    assert str(unknown[0]).endswith(row_checks.OWN_ENGINE)
    assert str(unknown[-1]).endswith(f"{row_checks.NO_MORE_SUGGESTIONS}. {row_checks.OWN_ENGINE}")
