"""Log error of one metric of training jobs: boosted residual, scale, random effects and held-out scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.arrays import FloatArray
from roofcast.training.learner.errors.error_distribution import ErrorScaleModel, GroupedConformal
from roofcast.training.training_jobs.group_effects import GroupEffects, KeyArray, condition_effects
from roofcast.training.training_jobs.held_out import ErrorRows, HeldOutErrors, fit_trees, left_by
from roofcast.training.training_jobs.residual_trees import ResidualTrees


@dataclass(frozen=True)
class LogErrorModel:
    """Distribution of log(measured / estimated) of one metric.

    Parameters
    ----------
    trees
        Boosted residual; None where random effects alone do better.
    scale
        Size of the errors of jobs.
    effects
        Of what the trees leave, in units of the scale.
    carry_over
        Share of the correction by trees and effects that applies to stacks that nobody measured.
    of_lineage, of_owner
        Distributions of standardised errors whose lineage, or whose stack's owner, was held out.
    """

    trees: ResidualTrees | None
    scale: ErrorScaleModel
    effects: GroupEffects
    carry_over: float
    of_lineage: GroupedConformal
    of_owner: GroupedConformal

    @classmethod
    def fit(cls, rows: ErrorRows, held_out: HeldOutErrors) -> Self:
        """Return the distribution fitted to rows, by what was learnt with groups of the same rows held out."""
        every = np.arange(len(rows.error))
        trees = fit_trees(rows, every) if held_out.has_trees else None
        public = np.flatnonzero(rows.is_public)
        left = left_by(trees, rows, public) / held_out.scale.predict(rows.x[public])
        effects = condition_effects(held_out.sd, rows.keys[public], left)
        groups = (rows.lineage[public], rows.owner[public])
        conformal = (
            GroupedConformal(score[public], pd.Series(group))
            for score, group in zip(held_out.scores, groups, strict=True)
        )
        return cls(trees, held_out.scale, effects, held_out.carry_over, *conformal)

    def predict(self, x: FloatArray, keys: KeyArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the log error of each job: shapes (n_job,)."""
        size = self.scale.predict(x)
        mean, spread = self.effects.predict(keys)
        trees = self.trees.predict(x) if self.trees else 0.0
        share = np.where(self.effects.knows_stack(keys), 1.0, self.carry_over)
        return share * (trees + size * mean), size * spread

    def condition_on(self, x: FloatArray, keys: KeyArray, error: FloatArray) -> Self:
        """Return the distribution that also knows the errors of own runs."""
        left = error - self.trees.predict(x) if self.trees else error
        return replace(self, effects=self.effects.append(keys, left / self.scale.predict(x)))

    def distribution(self, keys: KeyArray) -> list[tuple[npt.NDArray[np.bool_], GroupedConformal]]:
        """Return flags of jobs of stacks that are unknown and known, each with its standardised errors."""
        is_known = self.effects.knows_stack(keys)
        return [(~is_known, self.of_owner), (is_known, self.of_lineage)]
