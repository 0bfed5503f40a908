"""Promote, roll back or shadow a model version. The bundle is loaded first; the registry writes the audit log."""

from __future__ import annotations

from typing import Any, Final

from roofcast.data.measurements.target import INFERENCE, Target
from roofcast.serving.app_state.app_state import AppState
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.training.lifecycle.gate.challenger import set_challenger

COMMAND_LINE: Final = "the command line"


def promote(state: AppState, version: str, by: str, target: Target = INFERENCE) -> LoadedModel[Any]:
    """Load a version of a target's predictor, promote it in the registry and return it.

    Parameters
    ----------
    by
        Caller, for the audit log.

    Raises
    ------
    UnknownNameError
        If there is no such version.
    InputError
        If its bundle cannot be read, as after an upgrade that changed the columns; the champion stays.
    """
    registry = state.registry_of(target)
    bundle = registry.load(registry.find(version))
    return LoadedModel(registry.promote(version, by), bundle)


def roll_back(state: AppState, by: str, target: Target = INFERENCE) -> LoadedModel[Any]:
    """Load the version before the champion, make it the champion and return it.

    Of two simultaneous calls the second is refused, because its champion has been replaced.

    Parameters
    ----------
    by
        Caller, for the audit log.

    Raises
    ------
    NoAnswerError
        If there is no earlier version, or the champion has changed since the call.
    InputError
        If the bundle cannot be read; the champion stays.
    """
    registry = state.registry_of(target)
    champion = registry.champion()
    with registry.changing():
        bundle = registry.load(registry.previous())
        return LoadedModel(registry.rollback(champion, by), bundle)


def shadow(state: AppState, version: str, by: str) -> LoadedModel:
    """Load a version, make it the challenger and return it.

    Parameters
    ----------
    by
        Caller, for the audit log.

    Raises
    ------
    UnknownNameError
        If there is no such version.
    InputError
        If its bundle cannot be read, or it is the champion or the shipped predictor; the challenger stays.
    """
    registry = state.registry
    bundle = registry.load(registry.find(version))
    return LoadedModel(set_challenger(registry, version, by), bundle)


def swap(state: AppState, preloaded: LoadedModel[Any], target: Target = INFERENCE) -> LoadedModel[Any]:
    """Activate the champion in this server process, without loading `preloaded` again, and return it.

    Other server processes poll the registry and follow.
    """
    state.refresh(preloaded, target)
    return state.loaded_model(target)
