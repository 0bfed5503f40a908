from pathlib import Path

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.cli.reference import parameter_texts, reference

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_is_up_to_date() -> None:
    assert (DOCS / "REFERENCE.md").read_text(encoding="utf-8") == reference(), "run `make reference`"


def test_every_setting_is_documented() -> None:
    meanings = parameter_texts(Settings)
    assert set(meanings) == set(Settings.model_fields)
    assert all(len(meaning) > 10 for meaning in meanings.values())
