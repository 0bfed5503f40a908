from pathlib import Path

import pytest

from roofcast.training.lifecycle.shipped import shipped_predictor
from tests.golden.golden import differences, load_cases, send, serving


@pytest.mark.slow
def test_stored_requests_have_their_stored_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Predictions with intervals, with references, recommendations and explanations of the shipped predictor."""
    monkeypatch.setattr("roofcast.serving.composition.shipped_predictor", shipped_predictor)
    cases = load_cases()
    assert {case["path"] for case in cases} == {"/v1/predictions", "/v1/recommendations", "/v1/explanations"}
    with serving(tmp_path) as client:
        for i, case in enumerate(cases):
            status, answer = send(client, case)
            assert status == case["status"], answer
            assert list(differences(case["answer"], answer, f"{i} {case['path']}"))[:10] == []


@pytest.mark.parametrize(
    ("actual", "n_difference"),
    [
        ({"a": [1.0, "x"], "detail": "one"}, 0),
        ({"a": [1.0 + 1e-9, "x"], "detail": "another"}, 0),
        ({"a": [1.0 + 1e-5, "x"], "detail": "one"}, 1),
        ({"a": [1.0, "y"], "detail": "one"}, 1),
        ({"a": [1.0], "detail": "one"}, 1),
        ({"a": [True, "x"], "detail": "one"}, 1),
        ({"b": [1.0, "x"], "detail": "one"}, 1),
    ],
)
def test_differences_above_the_tolerance_are_found(actual: object, n_difference: int) -> None:
    assert len(list(differences({"a": [1.0, "x"], "detail": "one"}, actual))) == n_difference
