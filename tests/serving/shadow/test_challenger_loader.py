"""The challenger is loaded beside the champion, and never in its way."""

import pytest

from roofcast.data.errors import NotReadyError
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import Service, build_service
from roofcast.serving.shadow import challenger_loader
from roofcast.training.lifecycle.gate.challenger_alias import set_challenger, withdraw_challenger
from roofcast.training.lifecycle.registry.registry import MODEL_NAME, Champion, Registry
from tests.serving.http.test_app import register_copy


def test_a_challenger_is_loaded_and_dropped(service: Service) -> None:
    service.challenger.refresh()
    assert service.challenger.model is None
    version = register_copy(service)
    set_challenger(service.registry, version)
    service.challenger.refresh()
    loaded = service.challenger.model
    assert loaded is not None
    assert loaded.champion.version == version
    service.challenger.refresh()
    assert service.challenger.model is loaded
    withdraw_challenger(service.registry)
    service.challenger.refresh()
    assert service.challenger.model is None


def test_a_start_asks_no_registry_that_has_not_changed(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_set in (True, False):
        if is_set:
            set_challenger(service.registry, register_copy(service))
        else:
            withdraw_challenger(service.registry)
        service.challenger.refresh()
        with monkeypatch.context() as patch:
            patch.setattr(challenger_loader, "challenger_of", None)
            restarted = build_service(settings)
            restarted.challenger.refresh()
        assert (restarted.challenger.model is not None) == is_set


def test_a_challenger_that_cannot_be_loaded_is_a_problem_and_tried_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, champion = service.registry, service.active_model.champion
    source = registry._client.get_model_version_download_uri(MODEL_NAME, champion.version)
    broken = registry.register(source, champion.run_id, "0" * 64)
    set_challenger(registry, broken)
    service.challenger.refresh()
    assert f"the challenger, version {broken}, cannot be loaded: " in service.challenger.problem
    monkeypatch.setattr(registry, "load", None)
    register_copy(service)
    service.challenger.refresh()
    assert broken in service.challenger.problem
    withdraw_challenger(registry)
    service.challenger.refresh()
    assert not service.challenger.problem


def test_a_registry_that_does_not_answer_leaves_the_challenger(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_challenger(service.registry, register_copy(service))
    service.challenger.refresh()

    def fail(_: Registry) -> Champion:
        raise NotReadyError("away")

    monkeypatch.setattr(challenger_loader, "challenger_of", fail)
    register_copy(service)
    with pytest.raises(NotReadyError):
        service.challenger.refresh()
    assert service.challenger.model is not None


def test_a_challenger_is_loaded_after_another_could_not_be_fetched(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, first, second = service.registry, register_copy(service), register_copy(service)
    set_challenger(registry, first)
    service.challenger.refresh()

    def fail(_: Champion) -> None:
        raise NotReadyError("away")

    set_challenger(registry, second)
    with monkeypatch.context() as patch:
        patch.setattr(registry, "load", fail)
        with pytest.raises(NotReadyError):
            service.challenger.refresh()
    set_challenger(registry, first)
    service.challenger.refresh()
    assert service.challenger.model is not None
    assert service.challenger.model.champion.version == first


def test_a_share_of_zero_loads_none(service: Service, settings: Settings) -> None:
    set_challenger(service.registry, register_copy(service))
    unwanted = build_service(settings.model_copy(update={"shadow_ratio": 0.0}))
    unwanted.challenger.refresh()
    assert unwanted.challenger.model is None
