"""Measured stacks: those that training rows name."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pandas as pd

from roofcast.data.campaigns import load_campaigns
from roofcast.data.errors import InputError
from roofcast.training.dataset.stacks import name_stacks, stack_owners
from roofcast.training.dataset.training_set import TRAINED_ON
from roofcast.training.learner.predictor import RoofcastPredictor

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
