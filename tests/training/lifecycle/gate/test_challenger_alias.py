"""The challenger's alias in the registry: set, replaced, withdrawn, promoted."""

from pathlib import Path

import pytest

from roofcast.data.errors import InputError, NoAnswerError, UnknownNameError
from roofcast.training.lifecycle.gate.challenger_alias import challenger_of, set_challenger, withdraw_challenger
from roofcast.training.lifecycle.registry.champion_changes import read_changes
from roofcast.training.lifecycle.registry.registry import Champion, Registry, ShippedPredictor
from tests.training.lifecycle.registry.versions import version_of

SHIPPED = ShippedPredictor(Champion("shipped-0", "", "0" * 64), Path("none"))


@pytest.fixture
def registry(home: Path) -> Registry:
    """Return a registry of three versions, which are never loaded; the first is the champion."""
    registry = Registry(home, shipped=SHIPPED)
    with registry.run("a test") as run_id:
        pass
    for number in range(3):
        registry.register(home.as_uri(), run_id, str(number) * 64)
    registry.promote("1")
    return registry


def test_a_challenger_is_set_replaced_and_withdrawn(registry: Registry) -> None:
    assert challenger_of(registry) is None
    assert set_challenger(registry, "2", by="me").version == version_of(challenger_of(registry)) == "2"
    set_challenger(registry, "3", by="me")
    assert version_of(challenger_of(Registry(registry.home))) == "3"
    assert version_of(registry.champion()) == "1"
    assert withdraw_challenger(registry, by="you").version == "3"
    assert challenger_of(registry) is None
    with pytest.raises(NoAnswerError, match="no challenger"):
        withdraw_challenger(registry)
    changes = [(c.action, c.caller, c.version_before, c.version) for c in read_changes(registry.home, 3)]
    assert changes == [("withdrawal", "you", "3", "none"), ("shadow", "me", "2", "3"), ("shadow", "me", "none", "2")]


def test_a_challenger_that_is_promoted_is_none(registry: Registry) -> None:
    set_challenger(registry, "2")
    registry.promote("3")
    assert version_of(challenger_of(registry)) == "2"
    registry.promote("2")
    assert challenger_of(registry) is None
    set_challenger(registry, "3")
    registry.rollback()
    assert (version_of(registry.champion()), challenger_of(registry)) == ("3", None)


def test_a_version_that_cannot_be_a_challenger_is_refused(registry: Registry) -> None:
    set_challenger(registry, "2")
    with pytest.raises(InputError, match="another than the champion's, got 1"):
        set_challenger(registry, "1")
    with pytest.raises(InputError, match="comes with the package"):
        set_challenger(registry, SHIPPED.champion.version)
    with pytest.raises(UnknownNameError):
        set_challenger(registry, "9")
    assert version_of(challenger_of(registry)) == "2"
