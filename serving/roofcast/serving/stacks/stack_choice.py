"""The stack that a request names: a profile of own runs, or a measured stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from roofcast.data.errors import UnknownNameError
from roofcast.serving.counts import count_text
from roofcast.serving.stacks.measured import MeasuredStack, match_stack, measured_stacks
from roofcast.training.learner.predictor import CalibrationPoints
from roofcast.training.lifecycle.bundles.bundle import ModelBundle

if TYPE_CHECKING:
    from roofcast.serving.app_state.app_state import AppState
    from roofcast.serving.app_state.champion_loader import LoadedModel

_MAX_LISTED: Final = 12
"""Engines, and accelerators, of a measured stack that a note lists."""

Kind = Literal["profile", "shared_profile", "measured"]

_KIND_TEXT: Final[dict[Kind, str]] = {
    "profile": "stack profile",
    "shared_profile": "shared stack profile",
    "measured": "measured stack",
}


@dataclass(frozen=True, slots=True)
class StackUsed:
    """The stack that an answer is about.

    Parameters
    ----------
    name
        Of a measured stack in full, as `owner/part`.
    notes
        Such as rows of the profile that are left out, or the engines that a measured stack knows.
    """

    name: str
    kind: Kind
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{_KIND_TEXT[self.kind]} {self.name}"


class StackChoice(NamedTuple):
    """What answers a request: a bundle, the points that condition it, and the stack that the request names."""

    bundle: ModelBundle
    points: CalibrationPoints | None
    stack: StackUsed | None = None


def choose_stack(
    state: AppState,
    active: LoadedModel,
    owner: str,
    name: str | None,
    references: CalibrationPoints | None = None,
) -> StackChoice:
    """Return what answers a request that names a stack, or none, and has references.

    A name is that of the owner's profile, or else of a shared one, or else of a measured stack: its full name, or its
    owner's if this has one alone.

    Raises
    ------
    UnknownNameError
        If there is none of this name.
    InputError
        If the name is that of an owner of several measured stacks, or no row of the profile can be used.
    """
    if not name:
        return StackChoice(active.bundle, references)
    try:
        profile = state.profiles.load(state, owner, name)
    except UnknownNameError as error:
        return _choose_measured(state, active, name, references, error)
    kind: Kind = "shared_profile" if profile.is_shared else "profile"
    used = StackUsed(name, kind, profile.notes)
    points = profile.central if references is None else state.joined_points.join(profile.central, references)
    return StackChoice(active.bundle, points, used)


def _choose_measured(
    state: AppState,
    active: LoadedModel,
    name: str,
    references: CalibrationPoints | None,
    no_profile: UnknownNameError,
) -> StackChoice:
    known = {stack.name: stack for stack in measured_stacks(active.bundle.predictor)}
    if (stack := match_stack(name, known)) is None:
        raise UnknownNameError("stack", name, [*no_profile.args[2], *known])
    note = _measured_text(known[stack])
    return StackChoice(state.measured_bundles.load(active, stack), references, StackUsed(stack, "measured", (note,)))


def _measured_text(stack: MeasuredStack) -> str:
    """Return what a stack measured, and the advice for questions about anything else."""
    engines = _listed(stack.engines, "no named engine")
    accelerators = _listed(stack.accelerators, "no named accelerator")
    rows = f"{count_text(stack.n_row, 'row')} of {count_text(len(stack.models), 'LLM')}"
    advice = "intervals about any other engine or accelerator are too narrow, leave `stack` out there"
    return f"it measured {engines} on {accelerators} ({rows}): {advice}"


def _listed(names: Sequence[str], none: str) -> str:
    more = len(names) - _MAX_LISTED
    return ", ".join([*names[:_MAX_LISTED], *([f"{more} more"] if more > 0 else [])]) or none
