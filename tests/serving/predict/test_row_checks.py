import numpy as np
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import near_misses
from roofcast.serving.predict import row_checks
from roofcast.serving.predict.row_checks import MAX_SUGGESTION, check_rows
from tests.serving.http_client import ACCELERATOR, MODEL


def test_similar_names_are_looked_up_for_few_rows_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 3 * MAX_SUGGESTION
    names = np.array([*(f"{MODEL}-{i}" for i in range(n)), MODEL], dtype=object)
    columns = {"model": names, "accelerator": np.array([ACCELERATOR] * (n + 1), dtype=object)}
    columns |= {name: np.full(n + 1, 100.0) for name in ("n_input_token", "n_output_token")}
    looked_up: list[str] = []

    def look_up(name: str, *_: object) -> list[str]:
        looked_up.append(name)
        return ["similar"]

    monkeypatch.setattr("roofcast.data.errors.near_misses", look_up)
    _, problems = check_rows(columns, load_catalog())
    assert looked_up == names[:MAX_SUGGESTION].tolist()
    assert [problem and problem.status for problem in problems] == ["unknown_name"] * n + [None]
    assert "did you mean" in str(problems[0])
    assert str(problems[n - 1]) == f"model: no {names[n - 1]!r} is known; {row_checks.NO_MORE_SUGGESTIONS}"


def test_nothing_is_similar_to_an_endless_name() -> None:
    assert near_misses("llama" * 100, ["llama"]) == []


def test_an_unknown_engine_has_a_cure() -> None:
    columns = {"model": np.array([MODEL] * 2, dtype=object), "accelerator": np.array([ACCELERATOR] * 2, dtype=object)}
    columns |= {name: np.full(2, 100.0) for name in ("n_input_token", "n_output_token")}
    columns["engine"] = np.array(["acme-engine", "other"], dtype=object)
    _, problems = check_rows(columns, load_catalog(), engines=())
    assert problems[1] is None
    assert str(problems[0]).startswith("engine: no 'acme-engine' is known")
    assert str(problems[0]).endswith(row_checks.OWN_ENGINE)


def test_the_cure_of_an_unknown_engine_needs_no_suggestion() -> None:
    n = MAX_SUGGESTION + 1
    columns = {"model": np.array([MODEL] * n, dtype=object), "accelerator": np.array([ACCELERATOR] * n, dtype=object)}
    columns |= {name: np.full(n, 100.0) for name in ("n_input_token", "n_output_token")}
    columns["engine"] = np.array([f"acme-{i}" for i in range(n)], dtype=object)
    _, problems = check_rows(columns, load_catalog(), engines=())
    assert str(problems[-1]).endswith(f"{row_checks.NO_MORE_SUGGESTIONS}. {row_checks.OWN_ENGINE}")
