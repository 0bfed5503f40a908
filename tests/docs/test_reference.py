from pathlib import Path

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.cli.reference import reference

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_is_up_to_date() -> None:
    assert (DOCS / "REFERENCE.md").read_text(encoding="utf-8") == reference(), "run `make reference`"


def test_every_setting_is_documented() -> None:
    assert all(len(field.description or "") > 10 for field in Settings.model_fields.values())
