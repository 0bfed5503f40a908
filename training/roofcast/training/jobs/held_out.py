"""Errors of training jobs whose lineage, or whose stack's owner, was held out: what intervals and gate rest on.

Rows that API keys stored condition the effects of rates, with limited weight. Scale, standard deviations, the share
that carries over and the scores are those of the other rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.queries import FloatArray, RowIndex
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.stacks import is_uploaded
from roofcast.training.dataset.targets import row_weights
from roofcast.training.jobs.group_effects import (
    MAX_POINT,
    TERMS,
    GroupEffects,
    JobSpace,
    KeyArray,
    condition_effects,
    fit_standard_deviations,
    select_runs,
)
from roofcast.training.jobs.job_features import PARTS
from roofcast.training.learner.errors.error_distribution import ERROR_FLOOR, ErrorScaleModel
from roofcast.training.learner.ratio_model import Progress
from roofcast.training.learner.upload_limit import MAX_SHARE, limit_uploads

BoolArray = npt.NDArray[np.bool_]

N_FOLD: Final = 5

LEAST_OWNER: Final = 9
"""Owners of a class of frameworks from which intervals of 90 % follow."""

LEAST_CORRECTION: Final = 1e-9
"""Corrections, and variances of deviations, below do not tell how much of them carries over."""

_ACCELERATOR, _METHOD_FRAMEWORK = (tuple(TERMS).index(term) for term in (("accelerator",), ("method", "framework")))


@dataclass(frozen=True)
class ErrorRows:
    """Rows with a known error: arrays of shape (n_row, ...).

    - `columns`: Names of the columns of `x`.
    - `error`: Log(measured / estimated).
    - `lineage`, `owner`, `stack`: Groups of each row: those of `lineage` and `owner` are held out together, rows of a
      `stack` are weighed down by their number.
    - `is_measured`: Whether the error was measured; others are bounds, which condition the effects and nothing else.
    - `is_plain`: Whether the run is one of an ordinary trainer; False of all if these are no class of their own.
    """

    columns: Sequence[str]
    x: FloatArray
    keys: KeyArray
    error: FloatArray
    lineage: npt.NDArray[np.object_]
    owner: npt.NDArray[np.object_]
    stack: npt.NDArray[np.object_]
    is_measured: BoolArray
    is_plain: BoolArray

    @cached_property
    def is_public(self) -> BoolArray:
        """Whether no API key stored the row."""
        return ~is_uploaded(pd.Series(self.owner, dtype=object)).to_numpy(dtype=bool)


@dataclass(frozen=True)
class CarriedDeviation:
    """Deviation of errors of groups that nobody measured, given the predicted one.

    Jobs of a new group differ less in the size of their errors than is predicted. The logarithm of the deviation is
    ``center + slope * (log(predicted) - center)``, the slope that of held-out errors, from 0 to 1.
    """

    center: float
    slope: float

    @classmethod
    def fit(cls, error: FloatArray, predicted: FloatArray, group: npt.NDArray[np.object_]) -> Self:
        """Return the least-squares fit to absolute held-out errors; a group of n rows weighs as the root of n.

        Examples
        --------
        >>> predicted, group = np.array([0.1, 0.2, 0.4]), np.array(["a", "b", "c"], dtype=object)
        >>> CarriedDeviation.fit(np.full(3, 0.3), predicted, group).slope
        0.0
        """
        weight = 1.0 / np.sqrt(pd.Series(group).groupby(group).transform("size").to_numpy())
        x, y = np.log(predicted), np.log(error + ERROR_FLOOR)
        center = float(np.average(x, weights=weight))
        variance = float(np.average((x - center) ** 2, weights=weight))
        if variance < LEAST_CORRECTION:
            return cls(center, 1.0)
        slope = float(np.average((x - center) * y, weights=weight)) / variance
        return cls(center, min(max(slope, 0.0), 1.0))

    def carry(self, predicted: FloatArray) -> FloatArray:
        """Return the deviation of jobs of new groups: of the same shape."""
        return np.asarray(np.exp(self.center + self.slope * (np.log(predicted) - self.center)))


@dataclass(frozen=True)
class ClassErrors:
    """What held-out rows of a class of frameworks tell of lineages, and of owners, that nobody measured.

    `carry_over`: share of the correction that applies to other owners. `lineage` and `owner`: how much of the
    differences between predicted deviations others have.
    """

    carry_over: float
    lineage: CarriedDeviation
    owner: CarriedDeviation


@dataclass(frozen=True)
class HeldOutErrors:
    """What rows of held-out groups tell, first by lineage, then by owner of the stack.

    - `learns_uploads`: Whether rows of API keys condition the effects.
    - `scale`, `space`, `sd`: Size of the errors, likeness of jobs, standard deviations of the effects.
    - `of_class`: By class of `framework_classes`.
    - `correction`: shape (2, n_row). Predicted log error of each row from what is learnt without its group.
    - `scores`: shape (2, n_row). Absolute errors in units of this deviation; NaN for bounds. Scale and effects of a
      fold did not see it.
    """

    learns_uploads: bool
    scale: ErrorScaleModel
    space: JobSpace
    sd: FloatArray
    of_class: tuple[ClassErrors, ...]
    correction: FloatArray
    scores: FloatArray

    @classmethod
    def fit(
        cls,
        rows: ErrorRows,
        *,
        learns_uploads: bool,
        learns: BoolArray | None = None,
        progress: Progress | None = None,
        label: str = "",
    ) -> Self:
        """Return the errors of rows in folds of their lineages and owners, which public rows alone decide.

        The effects of each fold give the share that carries over, and the scores.

        `learns`: shape (n_row,): rows that are learnt from, of which a row of any group is predicted; None for all.
        `label`: of the folds, for `progress`.
        """
        learns = np.ones(len(rows.error), dtype=bool) if learns is None else learns
        teaches = learns & rows.is_public
        splits = [
            (i, train[learns[train]], test)
            for i, groups in enumerate((rows.lineage, rows.owner))
            for train, test in leave_one_group_out(pd.Series(groups), N_FOLD, rows.is_public)
        ]
        steps: Iterable[Any] = progress(splits, len(splits), label) if progress else splits
        counts = rows.is_measured & teaches
        at = np.flatnonzero(counts)
        scale, space = fit_scale(rows, at), JobSpace.fit(rows.columns, rows.x[at], PARTS)
        sd = fit_standard_deviations(space, rows.keys[at], rows.x[at], rows.error[at] / scale.predict(rows.x[at]))
        correction, spread = np.empty((2, len(rows.error))), np.empty((2, len(rows.error)))
        for i, train, test in steps:
            size = fit_scale(rows, train[counts[train]]).predict(rows.x)
            effects = fit_effects(sd, space, rows, train, size, learns_uploads=learns_uploads)
            mean, own = effects.predict(rows.keys[test], rows.x[test])
            correction[i, test], spread[i, test] = size[test] * mean, size[test] * own
        of_class = []
        for inside in framework_classes(rows, counts):
            among = np.flatnonzero(inside & counts)
            share = carry_over_share(correction[1, among], rows.error[among], rows.owner[among])
            correction[1, inside] *= share
            error = np.abs(rows.error - correction)[:, among]
            deviations = [
                CarriedDeviation.fit(error[i], spread[i, among], groups[among])
                for i, groups in enumerate((rows.lineage, rows.owner))
            ]
            of_class.append(ClassErrors(share, *deviations))
            spread[:, inside] = [one.carry(spread[i, inside]) for i, one in enumerate(deviations)]
        scores = np.abs(rows.error - correction) / spread
        scores[:, ~rows.is_measured] = np.nan
        return cls(learns_uploads, scale, space, sd, tuple(of_class), correction, scores)


def framework_classes(rows: ErrorRows, counts: BoolArray) -> list[BoolArray]:
    """Return the rows of tuned frameworks and of ordinary trainers; all together if one class has too few owners.

    `counts`: shape (n_row,): rows whose owners count.
    """
    classes = [~rows.is_plain, rows.is_plain]
    if min(len(set(rows.owner[inside & counts])) for inside in classes) < LEAST_OWNER:
        return [np.ones(len(rows.error), dtype=bool)]
    return classes


def fit_scale(rows: ErrorRows, at: RowIndex) -> ErrorScaleModel:
    """Return the size of errors, fitted to some rows."""
    return ErrorScaleModel.fit(rows.x[at], rows.error[at], row_weights(rows.stack[at]))


def fit_effects(
    sd: FloatArray, space: JobSpace, rows: ErrorRows, train: RowIndex, size: FloatArray, *, learns_uploads: bool
) -> GroupEffects:
    """Return the effects given some rows, thinned; those of keys weigh at most as `limit_uploads` says.

    `size`: shape (n_row,): of the error of each row.
    """
    keys, is_public = rows.keys[train], rows.is_public[train]
    public, own = np.flatnonzero(is_public), np.flatnonzero(~is_public)
    chosen, weight = public[select_runs(keys[public])], np.ones(len(train))
    if learns_uploads and len(own):
        job = {"accelerator": keys[:, _ACCELERATOR], "engine": keys[:, _METHOD_FRAMEWORK]}
        job["load"] = np.zeros(len(train), dtype=np.uint64)
        weight = limit_uploads(weight, pd.Series(rows.stack[train], dtype=object), job)
        chosen = np.append(chosen, own[select_runs(keys[own], int(MAX_SHARE * MAX_POINT))])
    at = train[chosen]
    return condition_effects(sd, space, rows.keys[at], rows.x[at], rows.error[at] / size[at], weight=weight[chosen])


def carry_over_share(correction: FloatArray, error: FloatArray, owner: npt.NDArray[np.object_]) -> float:
    """Return the factor, from 0 to 1, with the least sum of ``|error - factor * correction|``, each owner a vote.

    Examples
    --------
    >>> carry_over_share(np.array([1.0, -1.0, 2.0]), np.array([0.5, -0.4, 1.0]), np.array(["a", "a", "b"]))
    0.5
    """
    moves = np.abs(correction) > LEAST_CORRECTION
    correction, error, owner = correction[moves], error[moves], owner[moves]
    if not len(correction):
        return 1.0
    share = error / correction
    weight = np.abs(correction) / pd.Series(owner).groupby(owner).transform("size").to_numpy()
    order = np.argsort(share, kind="stable")
    middle = np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2.0)
    return float(np.clip(share[order][middle], 0.0, 1.0))
