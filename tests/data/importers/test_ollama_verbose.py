from pathlib import Path

import pytest

from roofcast.data.errors import SchemaError
from tests.data.importers.clients import rows, sample

ANSWERS = sample("ollama_verbose/two_answers.txt")


def test_an_answer_is_a_row() -> None:
    table = rows(ANSWERS, model=None)
    assert set(table["model"]) == {"llama3.1:8b"}
    assert table["n_input_token"].tolist() == [512, 4096]
    assert table["n_output_token"].tolist() == [300, 5000]
    assert table["ttft_s"].tolist() == [0.2, 1.9]
    assert table["tpot_s"].tolist() == [0.01, 0.0121]
    assert table["e2e_s"].tolist() == pytest.approx([3.2, 62.402114685])


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("$ ollama run llama3.1:8b --verbose", "", "model: is not in the file"),
        ("prompt eval count:    512 token(s)\n", "", "n_input_token: is not in the file"),
        ("3.25s", "soon", "total_duration: must be a duration such as 1m13.8s, got 'soon'"),
    ],
)
def test_what_is_missing_or_wrong_is_named(tmp_path: Path, old: str, new: str, problem: str) -> None:
    file = tmp_path / "answers.txt"
    file.write_text(ANSWERS.read_text().replace(old, new))
    with pytest.raises(SchemaError) as caught:
        rows(file, model=None)
    assert problem in str(caught.value)
