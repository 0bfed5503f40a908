"""Measured stacks: those that training rows name, and the predictor of queries about each."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pandas as pd

from roofcast.data.campaigns import load_campaigns
from roofcast.data.errors import InputError
from roofcast.features.pipeline import METRICS
from roofcast.training.dataset.stacks import name_stacks, stack_owners
from roofcast.training.dataset.training_set import TRAINED_ON
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.lifecycle.bundles.bundle import ModelBundle

if TYPE_CHECKING:
    from roofcast.serving.app_state.champion_loader import LoadedModel

MAX_CACHED: Final = 32
"""Bundles about measured stacks in memory; those of one champion share its error distributions."""

_MAX_NAMED: Final = 5
"""Stacks of one owner that an error lists."""


@dataclass(frozen=True, slots=True)
class MeasuredStack:
    """A stack of the shipped measurements, with ids of the catalogue."""

    name: str
    n_row: int
    models: tuple[str, ...]
    accelerators: tuple[str, ...]
    engines: tuple[str, ...]


def measured_stacks(predictor: RoofcastPredictor) -> list[MeasuredStack]:
    """Return the stacks of the shipped measurements that a predictor knows, by name."""
    stacks = _shipped_stacks()
    is_known = predictor.knows_stacks(pd.Series([stack.name for stack in stacks], dtype=object))
    return [stack for stack, known in zip(stacks, is_known, strict=True) if known]


@functools.cache
def _shipped_stacks() -> tuple[MeasuredStack, ...]:
    rows = load_campaigns(TRAINED_ON)
    names = ("model", "accelerator", "engine")
    stacks = []
    for name, part in rows[list(names)].groupby(name_stacks(rows)):
        values = [tuple(sorted(map(str, set(part[column]) - {""}))) for column in names]
        stacks.append(MeasuredStack(str(name), len(part), *values))
    return tuple(stacks)


def match_stack(name: str, known: Iterable[str]) -> str | None:
    """Return the stack of a full name, or else the only one of an owner; None if there is neither.

    Raises
    ------
    InputError
        If the name is that of an owner of several stacks.

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


class MeasuredBundles:
    """Bundles of the champion that answer about a measured stack; threads share each.

    The first one of a champion computes error distributions that take seconds, once.
    """

    def __init__(self) -> None:
        self._cache: OrderedDict[tuple[str, str], ModelBundle] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, active: LoadedModel, name: str) -> ModelBundle:
        """Return the champion's bundle about a stack that its predictor knows."""
        sha256 = active.champion.sha256
        with self._lock:
            if (bundle := self._cache.get((sha256, name))) is None:
                for other in [key for key in self._cache if key[0] != sha256]:
                    del self._cache[other]
                predictor = active.bundle.predictor.on_stack(name).build_cache(METRICS)
                bundle = self._cache[sha256, name] = replace(active.bundle, predictor=predictor)
            self._cache.move_to_end((sha256, name))
            while len(self._cache) > MAX_CACHED:
                self._cache.popitem(last=False)
            return bundle
