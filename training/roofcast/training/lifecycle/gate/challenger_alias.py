"""The challenger: a registered version that answers beside the champion, whose answers nobody sees."""

from typing import Annotated

from pydantic import Field

from roofcast.data.errors import InputError, NoAnswerError
from roofcast.data.specs import Spec
from roofcast.training.lifecycle.bundles.bundle_types import B
from roofcast.training.lifecycle.registry.champion_changes import record_change
from roofcast.training.lifecycle.registry.registry import CHALLENGER, PROGRAM, Champion, Registry


class VersionSummary(Spec):
    """A version of the predictor."""

    version: str
    in_service: bool
    is_challenger: bool
    run_id: str
    sha256: str
    description: Annotated[str, Field(description="What it learnt from, its errors, and why it was promoted or not.")]


NO_CHALLENGER = "there is no challenger; `roofcast versions shadow VERSION` sets one"


def challenger_of(registry: Registry[B]) -> Champion | None:
    """Return the challenger; None if there is none. Raises `NotReadyError` if the registry cannot be reached."""
    return registry.aliased(CHALLENGER)


def summarize_versions(registry: Registry[B]) -> list[VersionSummary]:
    """Return the versions of a registry, the newest first, then the shipped one; raises as `challenger_of`."""
    champion, challenger = registry.champion(), challenger_of(registry)
    return [
        VersionSummary(
            version=v.version, in_service=v == champion, is_challenger=v == challenger, run_id=v.run_id,
            sha256=v.sha256, description=v.description,
        )
        for v in registry.versions()
    ]  # fmt: skip


def set_challenger(registry: Registry[B], version: str, by: str = PROGRAM) -> Champion:
    """Make a version the challenger, in place of an earlier one, and return it.

    Raises `UnknownNameError` if there is no such version; `InputError` if it is the champion, or the shipped
    predictor, which has no place in the registry.
    """
    with registry.changing():
        challenger, before = registry.find(version), challenger_of(registry)
        if challenger == registry.champion():
            raise InputError("version", f"must be another than the champion's, got {version}, which is in service")
        if registry.is_shipped(challenger):
            raise InputError("version", f"must be a registered version, got {version}, which comes with the package")
        registry.set_alias(CHALLENGER, challenger.version)
        record_change(registry.home, "shadow", by, before.version if before else "none", challenger.version)
    return challenger


def withdraw_challenger(registry: Registry, by: str = PROGRAM) -> Champion:
    """Leave the champion without a challenger; return the version that was one.

    Raises `NoAnswerError` if there is none.
    """
    with registry.changing():
        before = challenger_of(registry)
        if before is None:
            raise NoAnswerError(NO_CHALLENGER)
        registry.set_alias(CHALLENGER, None)
        record_change(registry.home, "withdrawal", by, before.version, "none")
    return before
