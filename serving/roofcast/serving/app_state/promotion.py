"""Promote, roll back or shadow a model version. The bundle is loaded first; the registry writes the audit log."""

from typing import Final

from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.training.lifecycle.bundles.bundle_types import B
from roofcast.training.lifecycle.gate.challenger_alias import set_challenger
from roofcast.training.lifecycle.registry.registry import Registry

COMMAND_LINE: Final = "the command line"


def promote(registry: Registry[B], version: str, by: str) -> LoadedModel[B]:
    """Load a version, promote it in the registry and return it.

    `by`: caller, for the audit log. Raises `UnknownNameError` if there is no such version. Raises `InputError` if its
    bundle cannot be read, as after an upgrade that changed the columns; the champion stays.
    """
    bundle = registry.load(registry.find(version))
    return LoadedModel(registry.promote(version, by), bundle)


def roll_back(registry: Registry[B], by: str) -> LoadedModel[B]:
    """Load the version before the champion, make it the champion and return it.

    Of two simultaneous calls the second is refused, because its champion has been replaced.

    `by`: caller, for the audit log. Raises `NoAnswerError` if there is no earlier version, or the champion has
    changed since the call. Raises `InputError` if the bundle cannot be read; the champion stays.
    """
    champion = registry.champion()
    with registry.changing():
        bundle = registry.load(registry.previous())
        return LoadedModel(registry.rollback(champion, by), bundle)


def shadow(registry: Registry, version: str, by: str) -> LoadedModel:
    """Load a version, make it the challenger and return it.

    `by`: caller, for the audit log. Raises `UnknownNameError` if there is no such version. Raises `InputError` if its
    bundle cannot be read, or it is the champion or the shipped predictor; the challenger stays.
    """
    bundle = registry.load(registry.find(version))
    return LoadedModel(set_challenger(registry, version, by), bundle)
