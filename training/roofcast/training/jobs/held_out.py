"""Errors of training jobs whose lineage, or whose stack's owner, was held out: what intervals and gate rest on.

Rows that API keys stored condition the effects of rates, with limited weight. Scale, standard deviations, the share
that carries over and the scores are those of the other rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.queries import BoolArray, FloatArray, RowIndex
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.stacks import is_uploaded
from roofcast.training.dataset.targets import row_weights
from roofcast.training.jobs.job_effects import MAX_POINT, TERMS, JobEffects, JobSpace, KeyArray, select_runs
from roofcast.training.jobs.job_features import PARTS
from roofcast.training.learner.carry_over import carry_over_share
from roofcast.training.learner.errors.error_distribution import ERROR_FLOOR, ErrorScaleModel
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal
from roofcast.training.learner.ratio_model import Progress
from roofcast.training.learner.upload_limit import MAX_SHARE, limit_uploads

N_FOLD: Final = 5

LEAST_OWNER: Final = 9
"""Owners of a class of frameworks from which intervals of 90 % follow."""

LEAST_VARIANCE: Final = 1e-9
"""Variance of log deviations below which they do not tell how much of their differences carries over."""

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

    @property
    def held_out_groups(self) -> tuple[npt.NDArray[np.object_], ...]:
        """What is held out first, and then."""
        return self.lineage, self.owner

    def classes(self, counts: BoolArray) -> list[BoolArray]:
        """Return the rows of tuned frameworks and of ordinary trainers; all if one class has too few owners.

        `counts`: shape (n_row,): rows whose owners count.
        """
        classes = [~self.is_plain, self.is_plain]
        if min(len(set(self.owner[inside & counts])) for inside in classes) < LEAST_OWNER:
            return [np.ones(len(self.error), dtype=bool)]
        return classes


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
        weight, x, y = row_weights(group), np.log(predicted), np.log(error + ERROR_FLOOR)
        center = float(np.average(x, weights=weight))
        variance = float(np.average((x - center) ** 2, weights=weight))
        if variance < LEAST_VARIANCE:
            return cls(center, 1.0)
        slope = float(np.average((x - center) * y, weights=weight)) / variance
        return cls(center, min(max(slope, 0.0), 1.0))

    def carry(self, predicted: FloatArray) -> FloatArray:
        """Return the deviation of jobs of new groups: of the same shape."""
        return np.asarray(np.exp(self.center + self.slope * (np.log(predicted) - self.center)))


@dataclass(frozen=True)
class ClassErrors:
    """What held-out rows of a class of frameworks tell of lineages, and of owners, that nobody measured.

    - `carry_over`: Share of the correction that applies to other owners.
    - `lineage`, `owner`: How much of the differences between predicted deviations others have.
    - `of_lineage`, `of_owner`: Distributions of standardised errors.
    """

    carry_over: float
    lineage: CarriedDeviation
    owner: CarriedDeviation
    of_lineage: GroupedConformal
    of_owner: GroupedConformal


@dataclass(frozen=True)
class LogErrorModel:
    """Distribution of log(measured / estimated) of one metric.

    - `scale`: Size of the errors of jobs.
    - `space`, `effects`: Likeness of jobs, and effects in units of the scale.
    - `of_class`: By class of frameworks: tuned ones and ordinary trainers, or all together.
    """

    scale: ErrorScaleModel
    space: JobSpace
    effects: JobEffects
    of_class: tuple[ClassErrors, ...]

    @property
    def highest_level(self) -> float:
        """Highest level that the number of lineages, and of owners of each class, supports."""
        return min(q.highest_level for one in self.of_class for q in (one.of_lineage, one.of_owner))

    def predict(self, x: FloatArray, keys: KeyArray, plain: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the log error of each job: shapes (n_job,).

        `plain`: shape (n_job,): whether the job is one of an ordinary trainer.
        """
        size = self.scale.predict(x)
        mean, spread = self.effects.predict(self.space.points(keys, x))
        share, sd = np.ones(len(size)), size * spread
        for inside, own, is_known in self._cells(keys, plain):
            share[inside] = 1.0 if is_known else own.carry_over
            sd[inside] = (own.lineage if is_known else own.owner).carry(sd[inside])
        return share * size * mean, sd

    def condition_on(self, x: FloatArray, keys: KeyArray, error: FloatArray) -> Self:
        """Return the distribution that also knows the errors of own runs."""
        points = self.space.points(keys, x)
        return replace(self, effects=self.effects.condition_on(points, error / self.scale.predict(x)))

    def distribution(self, keys: KeyArray, plain: BoolArray) -> list[tuple[BoolArray, GroupedConformal]]:
        """Return flags of jobs that share a distribution of standardised errors, each with it."""
        cells = self._cells(keys, plain)
        return [(inside, own.of_lineage if is_known else own.of_owner) for inside, own, is_known in cells]

    def _cells(self, keys: KeyArray, plain: BoolArray) -> list[tuple[BoolArray, ClassErrors, bool]]:
        known = self.effects.knows_stack(keys)
        classes = [~plain, plain] if len(self.of_class) > 1 else [np.ones(len(plain), dtype=bool)]
        pairs = [(inside & (known == flag), own, flag) for inside, own in zip(classes, self.of_class, strict=True)
                 for flag in (False, True)]  # fmt: skip
        return [pair for pair in pairs if pair[0].any()]


@dataclass(frozen=True)
class HeldOutErrors:
    """What rows of held-out groups tell, first by lineage, then by owner of the stack.

    - `model`: Distribution fitted to all rows, by what was learnt with groups of the same rows held out.
    - `correction`: shape (2, n_row). Predicted log error of each row from what is learnt without its group.
    - `scores`: shape (2, n_row). Absolute errors in units of this deviation; NaN for bounds.
    """

    model: LogErrorModel
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

        - `learns_uploads`: Whether rows of API keys condition the effects.
        - `learns`: shape (n_row,): rows that are learnt from, of which a row of any group is predicted; None for all.
        - `label`: Of the folds, for `progress`.
        """
        learns = np.ones(len(rows.error), dtype=bool) if learns is None else learns
        splits = [
            (i, train[learns[train]], test)
            for i, groups in enumerate(rows.held_out_groups)
            for train, test in leave_one_group_out(pd.Series(groups), N_FOLD, rows.is_public)
        ]
        steps: Iterable[Any] = progress(splits, len(splits), label) if progress else splits
        counts = rows.is_measured & learns & rows.is_public

        def learn(train: RowIndex) -> tuple[ErrorScaleModel, JobSpace, JobEffects]:
            at = train[counts[train]]
            scale = ErrorScaleModel.fit(rows.x[at], rows.error[at], row_weights(rows.stack[at]))
            space = JobSpace.fit(rows.columns, rows.x[at], PARTS)
            points, error = space.points(rows.keys, rows.x), rows.error / scale.predict(rows.x)
            chosen, weight = _training_runs(rows, train, learns_uploads=learns_uploads)
            prior = JobEffects().fit(points.take(at), error[at])
            return scale, space, prior.with_points(points.take(chosen), error[chosen], weight)

        correction, spread = np.empty((2, len(rows.error))), np.empty((2, len(rows.error)))
        for i, train, test in steps:
            scale, space, effects = learn(train)
            size = scale.predict(rows.x[test])
            mean, own = effects.predict(space.points(rows.keys[test], rows.x[test]))
            correction[i, test], spread[i, test] = size * mean, size * own
        of_class, scores = _fit_classes(rows, counts, correction, spread)
        return cls(LogErrorModel(*learn(np.flatnonzero(learns)), of_class), correction, scores)


def _fit_classes(
    rows: ErrorRows, counts: BoolArray, correction: FloatArray, spread: FloatArray
) -> tuple[tuple[ClassErrors, ...], FloatArray]:
    """Return what each class tells, and the scores; owners' corrections become those that carry over."""
    of_class, scores = [], np.empty(correction.shape)
    for inside in rows.classes(counts):
        among = np.flatnonzero(inside & counts)
        share = carry_over_share(correction[1, among], rows.error[among], rows.owner[among], size_exponent=0.0)
        correction[1, inside] *= share
        error = np.abs(rows.error - correction)
        deviations, conformals = [], []
        for i, groups in enumerate(rows.held_out_groups):
            deviations.append(CarriedDeviation.fit(error[i, among], spread[i, among], groups[among]))
            scores[i, inside] = error[i, inside] / deviations[i].carry(spread[i, inside])
            conformals.append(GroupedConformal(scores[i, among], pd.Series(groups[among])))
        of_class.append(ClassErrors(share, deviations[0], deviations[1], conformals[0], conformals[1]))
    scores[:, ~rows.is_measured] = np.nan
    return tuple(of_class), scores


def _training_runs(rows: ErrorRows, train: RowIndex, *, learns_uploads: bool) -> tuple[RowIndex, FloatArray]:
    """Return the rows that effects are conditioned on, and their weights: those of keys have limited ones."""
    keys, is_public = rows.keys[train], rows.is_public[train]
    public, own = np.flatnonzero(is_public), np.flatnonzero(~is_public)
    chosen, weight = public[select_runs(keys[public])], np.ones(len(train))
    if learns_uploads and len(own):
        job = {"accelerator": keys[:, _ACCELERATOR], "engine": keys[:, _METHOD_FRAMEWORK]}
        job["load"] = np.zeros(len(train), dtype=np.uint64)
        weight = limit_uploads(weight, pd.Series(rows.stack[train], dtype=object), job)
        chosen = np.append(chosen, own[select_runs(keys[own], int(MAX_SHARE * MAX_POINT))])
    return train[chosen], weight[chosen]
