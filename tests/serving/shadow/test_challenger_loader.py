"""The challenger is loaded beside the champion, and never in its way."""

from __future__ import annotations

import pytest

from roofcast.data.errors import NotReadyError
from roofcast.serving.app_state.app_state import AppState
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.shadow import challenger_loader
from roofcast.training.lifecycle.gate.challenger import set_challenger, withdraw_challenger
from roofcast.training.lifecycle.registry.registry import MODEL_NAME, Champion, Registry
from tests.serving.http.test_app import register_copy


def test_a_challenger_is_loaded_and_dropped(state: AppState) -> None:
    state.challenger.refresh()
    assert state.challenger.model is None
    version = register_copy(state)
    set_challenger(state.registry, version)
    state.challenger.refresh()
    loaded = state.challenger.model
    assert loaded is not None
    assert loaded.champion.version == version
    state.challenger.refresh()
    assert state.challenger.model is loaded
    withdraw_challenger(state.registry)
    state.challenger.refresh()
    assert state.challenger.model is None


def test_a_start_asks_no_registry_that_has_not_changed(
    state: AppState, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_set in (True, False):
        if is_set:
            set_challenger(state.registry, register_copy(state))
        else:
            withdraw_challenger(state.registry)
        state.challenger.refresh()
        with monkeypatch.context() as patch:
            patch.setattr(challenger_loader, "challenger_of", None)
            restarted = AppState(settings)
            restarted.challenger.refresh()
        assert (restarted.challenger.model is not None) == is_set


def test_a_challenger_that_cannot_be_loaded_is_a_problem_and_tried_once(
    state: AppState, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, champion = state.registry, state.active_model.champion
    source = registry._client.get_model_version_download_uri(MODEL_NAME, champion.version)
    broken = registry.register(source, champion.run_id, "0" * 64)
    set_challenger(registry, broken)
    state.challenger.refresh()
    assert f"the challenger, version {broken}, cannot be loaded: " in state.challenger.problem
    monkeypatch.setattr(registry, "load", None)
    register_copy(state)
    state.challenger.refresh()
    assert broken in state.challenger.problem
    withdraw_challenger(registry)
    state.challenger.refresh()
    assert not state.challenger.problem


def test_a_registry_that_does_not_answer_leaves_the_challenger(
    state: AppState, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_challenger(state.registry, register_copy(state))
    state.challenger.refresh()

    def fail(_: Registry) -> Champion:
        raise NotReadyError("away")

    monkeypatch.setattr(challenger_loader, "challenger_of", fail)
    register_copy(state)
    with pytest.raises(NotReadyError):
        state.challenger.refresh()
    assert state.challenger.model is not None


def test_a_challenger_is_loaded_after_another_could_not_be_fetched(
    state: AppState, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, first, second = state.registry, register_copy(state), register_copy(state)
    set_challenger(registry, first)
    state.challenger.refresh()

    def fail(_: Champion) -> None:
        raise NotReadyError("away")

    set_challenger(registry, second)
    with monkeypatch.context() as patch:
        patch.setattr(registry, "load", fail)
        with pytest.raises(NotReadyError):
            state.challenger.refresh()
    set_challenger(registry, first)
    state.challenger.refresh()
    assert state.challenger.model is not None
    assert state.challenger.model.champion.version == first


def test_a_share_of_zero_loads_none(state: AppState, settings: Settings) -> None:
    set_challenger(state.registry, register_copy(state))
    unwanted = AppState(settings.model_copy(update={"shadow_ratio": 0.0}))
    unwanted.challenger.refresh()
    assert unwanted.challenger.model is None
