"""Log error of one metric of training jobs: scale, random effects and held-out scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.queries import FloatArray
from roofcast.training.jobs.group_effects import GroupEffects, KeyArray
from roofcast.training.jobs.held_out import CarriedDeviation, ErrorRows, HeldOutErrors, fit_effects
from roofcast.training.learner.errors.error_distribution import ErrorScaleModel
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal


@dataclass(frozen=True)
class LogErrorModel:
    """Distribution of log(measured / estimated) of one metric.

    Parameters
    ----------
    scale
        Size of the errors of jobs.
    effects
        In units of the scale.
    carry_over
        Share of the correction that applies to stacks that nobody measured.
    deviation_of_lineage, deviation_of_owner
        Of lineages that nobody measured, and of stacks that nobody did.
    of_lineage, of_owner
        Distributions of standardised errors whose lineage, or whose stack's owner, was held out.
    """

    scale: ErrorScaleModel
    effects: GroupEffects
    carry_over: float
    deviation_of_lineage: CarriedDeviation
    deviation_of_owner: CarriedDeviation
    of_lineage: GroupedConformal
    of_owner: GroupedConformal

    @classmethod
    def fit(cls, rows: ErrorRows, held_out: HeldOutErrors) -> Self:
        """Return the distribution fitted to rows, by what was learnt with groups of the same rows held out."""
        public, size = np.flatnonzero(rows.is_public), held_out.scale.predict(rows.x)
        every = np.arange(len(rows.error))
        effects = fit_effects(held_out.sd, held_out.space, rows, every, size, learns_uploads=held_out.learns_uploads)
        groups = (rows.lineage[public], rows.owner[public])
        conformal = (
            GroupedConformal(score[public], pd.Series(group))
            for score, group in zip(held_out.scores, groups, strict=True)
        )
        return cls(held_out.scale, effects, held_out.carry_over, *held_out.deviation, *conformal)

    def predict(self, x: FloatArray, keys: KeyArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the log error of each job: shapes (n_job,)."""
        size = self.scale.predict(x)
        mean, spread = self.effects.predict(keys, x)
        is_known, sd = self.effects.knows_stack(keys), size * spread
        share = np.where(is_known, 1.0, self.carry_over)
        carried = np.where(is_known, self.deviation_of_lineage.carry(sd), self.deviation_of_owner.carry(sd))
        return share * size * mean, carried

    def condition_on(self, x: FloatArray, keys: KeyArray, error: FloatArray) -> Self:
        """Return the distribution that also knows the errors of own runs."""
        return replace(self, effects=self.effects.append(keys, x, error / self.scale.predict(x)))

    def distribution(self, keys: KeyArray) -> list[tuple[npt.NDArray[np.bool_], GroupedConformal]]:
        """Return flags of jobs of stacks that are unknown and known, each with its standardised errors."""
        is_known = self.effects.knows_stack(keys)
        return [(~is_known, self.of_owner), (is_known, self.of_lineage)]
