"""The stack that a request names: a profile of own runs, or a measured stack."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import pandas as pd

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.app_state.store_access import StoreAccess
from roofcast.serving.defaults import DEFAULT_OPERATOR, Operator
from roofcast.serving.display_names import count_text
from roofcast.serving.keyed_cache import KeyedCache
from roofcast.serving.stacks.profiles import Profile, load_stored
from roofcast.training.dataset.stacks import name_stacks, stack_owners
from roofcast.training.dataset.training_set import TRAINED_ON
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor
from roofcast.training.lifecycle.bundles.bundle import ModelBundle

if TYPE_CHECKING:
    from roofcast.data.store.stack_profiles import StoredProfile

_MAX_NAMED: Final = 5
"""Stacks of one owner that an error lists."""


@dataclass(frozen=True, slots=True)
class MeasuredStackSummary:
    """A stack of the shipped measurements, with ids of the catalogue."""

    name: str
    n_row: int
    models: tuple[str, ...]
    accelerators: tuple[str, ...]
    engines: tuple[str, ...]


def measured_stacks(predictor: RoofcastPredictor) -> list[MeasuredStackSummary]:
    """Return the stacks of the shipped measurements that a predictor knows, by name."""
    stacks = _shipped_stacks()
    is_known = predictor.knows_stacks(pd.Series([stack.name for stack in stacks], dtype=object))
    return [stack for stack, known in zip(stacks, is_known, strict=True) if known]


@functools.cache
def _shipped_stacks() -> tuple[MeasuredStackSummary, ...]:
    rows = load_campaigns(TRAINED_ON)
    names = ("model", "accelerator", "engine")
    stacks = []
    for name, part in rows[list(names)].groupby(name_stacks(rows)):
        values = [tuple(sorted(map(str, set(part[column]) - {""}))) for column in names]
        stacks.append(MeasuredStackSummary(str(name), len(part), *values))
    return tuple(stacks)


def match_stack(name: str, known: Iterable[str]) -> str | None:
    """Return the stack of a full name, or else the only one of an owner; None if there is neither.

    Raises `InputError` if the name is that of an owner of several stacks.

    Examples
    --------
    >>> match_stack("lab", ["lab/rig", "other"])
    'lab/rig'
    """
    names = pd.Series(sorted(known), dtype=object)
    if name in set(names):
        return name
    parts = names[stack_owners(names) == name].tolist()
    if len(parts) > 1:
        listed = ", ".join(parts[:_MAX_NAMED]) + (", ..." if len(parts) > _MAX_NAMED else "")
        raise InputError("stack", f"{name!r} has {len(parts)} of them: {listed}; name one")
    return str(parts[0]) if parts else None


MAX_PROFILE: Final = 16
MAX_PROFILE_ROW: Final = 1000
"""Profiles in memory, and the rows of these together; 500 rows take some 95 MB."""

MAX_BUNDLE: Final = 32
"""Bundles about measured stacks in memory; each has the factors of its own rows, 30 MB of the largest stack."""

_MAX_LISTED: Final = 12
"""Engines, and accelerators, of a measured stack that a note lists."""

_STACK_LISTS: Final = (
    "`roofcast stacks list`, and --measured, list them; over HTTP /v1/stacks and /v1/measured-stacks"
)
"""Where the names of stacks are."""

Kind = Literal["profile", "shared_profile", "measured"]

_KIND_TEXT: Final[dict[Kind, str]] = {
    "profile": "stack profile",
    "shared_profile": "shared stack profile",
    "measured": "measured stack",
}


@dataclass(frozen=True, slots=True)
class StackUsed:
    """The stack that an answer is about.

    `name`: of a measured stack in full, as `owner/part`. `notes`: such as rows of the profile that are left out, or
    the engines that a measured stack knows.
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


class Stacks:
    """The stacks that requests may name, with what makes them quick to answer about: threads share it.

    Cached are profiles with their points, on which predictors are conditioned once, and the champion's bundles about
    any operator and about measured stacks.

    `build`: returns the profile of a name and its stored rows, which the catalogue and the predictor admit.
    """

    def __init__(
        self,
        stores: StoreAccess,
        build: Callable[[str, StoredProfile, Catalog, RoofcastPredictor], Profile] = load_stored,
    ) -> None:
        self._stores = stores
        self._build = build
        self._profiles = KeyedCache[tuple[Catalog, Profile]](
            MAX_PROFILE_ROW, lambda one: max(len(one[1].points.X), MAX_PROFILE_ROW / MAX_PROFILE)
        )
        self._bundles = KeyedCache[ModelBundle](MAX_BUNDLE)

    def choose(
        self,
        catalog: Catalog,
        active: LoadedModel,
        owner: str,
        name: str | None,
        references: CalibrationPoints | None = None,
        *,
        operator: Operator = DEFAULT_OPERATOR,
    ) -> StackChoice:
        """Return what answers a request that names a stack, or none, and has references.

        A name is that of the owner's profile, or else of a shared one, or else of a measured stack: its full name, or
        its owner's if this has one alone.

        `owner`: API key whose profiles the request may name; empty for the command line. `operator`: whose stack the
        answer is about, unless it is a measured one. Raises `UnknownNameError` if there is none of this name;
        `InputError` if the name is that of an owner of several measured stacks, or no row of the profile can be used.
        """
        bundle = active.bundle
        if operator == "any":
            bundle = self._bundles.get(active.champion.sha256, operator, lambda: _bundle_of_any(active.bundle))
        if not name:
            return StackChoice(bundle, references)
        try:
            profile = self.load_profile(catalog, active, owner, name)
        except UnknownNameError as error:
            return self._choose_measured(active, name, references, error)
        kind: Kind = "shared_profile" if profile.is_shared else "profile"
        points = profile.central if references is None else _join(profile.central, references)
        return StackChoice(bundle, points, StackUsed(name, kind, profile.notes))

    def load_profile(self, catalog: Catalog, active: LoadedModel, owner: str, name: str) -> Profile:
        """Return the owner's profile of a name, or else the shared one.

        Raises `UnknownNameError` if there is neither; `InputError` if no row can be used any more, as when its
        accelerator was removed.
        """
        stored = self._stores.open().stacks.load(owner, name)
        key = owner, name, stored.ids, stored.hides_shared, id(catalog)  # the value keeps the catalogue alive
        return self._profiles.get(
            active.champion.sha256,
            key,
            lambda: (catalog, self._build(name, stored, catalog, active.bundle.predictor)),
        )[1]

    def _choose_measured(
        self, active: LoadedModel, name: str, references: CalibrationPoints | None, no_profile: UnknownNameError
    ) -> StackChoice:
        known = {stack.name: stack for stack in measured_stacks(active.bundle.predictor)}
        if (stack := match_stack(name, known)) is None:
            raise UnknownNameError("stack", name, [*no_profile.args[2], *known], _STACK_LISTS)
        bundle = self._bundles.get(active.champion.sha256, stack, lambda: _bundle_about(active.bundle, stack))
        return StackChoice(bundle, references, StackUsed(stack, "measured", (_measured_text(known[stack]),)))


def _bundle_of_any(bundle: ModelBundle) -> ModelBundle:
    return replace(bundle, predictor=bundle.predictor.of_any_operator())


def _bundle_about(bundle: ModelBundle, stack: str) -> ModelBundle:
    return replace(bundle, predictor=bundle.predictor.on_stack(stack))


def _join(points: CalibrationPoints, references: CalibrationPoints) -> CalibrationPoints:
    X, y = (pd.concat(pair, ignore_index=True) for pair in ((points.X, references.X), (points.y, references.y)))
    return CalibrationPoints(X, y)


def _measured_text(stack: MeasuredStackSummary) -> str:
    engines = _listed(stack.engines, "no named engine")
    accelerators = _listed(stack.accelerators, "no named accelerator")
    rows = f"{count_text(stack.n_row, 'row')} of {count_text(len(stack.models), 'LLM')}"
    advice = "intervals about any other engine or accelerator are too narrow, leave `stack` out there"
    return f"it measured {engines} on {accelerators} ({rows}): {advice}"


def _listed(names: Sequence[str], none: str) -> str:
    more = len(names) - _MAX_LISTED
    return ", ".join([*names[:_MAX_LISTED], *([f"{more} more"] if more > 0 else [])]) or none
