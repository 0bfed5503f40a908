from pathlib import Path

import pytest

from roofcast.data.errors import InputError
from roofcast.serving.app_state.settings import Settings, load_settings
from roofcast.training.config import TrainingConfig


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {
        "ROOFCAST_HOME": str(tmp_path), "ROOFCAST_POLL_S": "0.5", "ROOFCAST_DATABASE_URL": "sqlite://",
        "MLFLOW_TRACKING_URI": "http://127.0.0.1:1", "ROOFCAST_MAX_BODY_BYTE": "5000", "ROOFCAST_MAX_ROW": "7",
        "ROOFCAST_TRAINING": '{"n_member": 1}',
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert load_settings() == Settings(
        home=tmp_path, poll_s=0.5, database_url="sqlite://", mlflow_tracking_uri="http://127.0.0.1:1",
        max_body_byte=5000, max_row=7, training=TrainingConfig(n_member=1),
    )  # fmt: skip


def test_a_blank_variable_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFCAST_POLL_S", "")
    assert load_settings().poll_s == 2.0


def test_the_store_is_under_the_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOFCAST_HOME", "here")
    assert load_settings().store_url == f"sqlite:///{tmp_path / 'here' / 'roofcast.sqlite'}"
    assert Settings(home=Path("there")).home == tmp_path / "there"
    assert Settings(database_url="sqlite://").store_url == "sqlite://"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ROOFCAST_POLL_S", "0"),
        ("ROOFCAST_POLL_S", "nan"),
        ("ROOFCAST_MAX_ROW", "many"),
        ("ROOFCAST_MAX_BODY_BYTE", "5000001"),
        ("ROOFCAST_REQUIRE_KEY", "none"),
        ("ROOFCAST_RATE_LIMIT", "often"),
        ("ROOFCAST_DRAIN_S", "-1"),
        ("ROOFCAST_TRAINING", '{"n_members": 1}'),
    ],
)
def test_an_invalid_setting_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError) as caught:
        load_settings()
    assert caught.value.field == name
