"""Promote or roll back a model version. The bundle is loaded first; the registry writes the audit log."""

from __future__ import annotations

from typing import Final

from roofcast.serving.app_state.app_state import AppState, LoadedModel

COMMAND_LINE: Final = "the command line"


def promote(state: AppState, version: str, by: str) -> LoadedModel:
    """Put a version into service and return it; one that cannot be served is refused, and the one in service stays.

    Parameters
    ----------
    state
        Whose registry.
    version
        In the registry.
    by
        Who asked, for the log.

    Raises
    ------
    UnknownNameError
        If there is no such version.
    InputError
        If its bundle cannot be read, as after an upgrade that changed the columns.
    """
    registry = state.registry
    bundle = registry.load(registry.find(version))
    return LoadedModel(registry.promote(version, by), bundle)


def roll_back(state: AppState, by: str) -> LoadedModel:
    """Put the version before the champion back into service and return it; asked again, the one before that.

    Of two who ask at once the second is refused: the champion that was to go is gone.

    Raises
    ------
    NoAnswerError
        If there is none, or another champion has come since this was asked for.
    InputError
        If its bundle cannot be read; the one in service stays.
    """
    registry = state.registry
    asked_of = registry.champion()
    with registry.changing():
        tried = registry.previous()
        bundle = registry.load(tried)
        return LoadedModel(registry.rollback(asked_of, by), bundle)


def swap(state: AppState, tried: LoadedModel) -> LoadedModel:
    """Return what is in service here once the champion is; other server processes follow within seconds.

    Parameters
    ----------
    state
        Of this server process.
    tried
        What was put into service, so that it is not loaded again.
    """
    state.refresh(tried)
    return state.active_model
