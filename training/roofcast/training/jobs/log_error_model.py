"""Log error of one metric of training jobs: scale, random effects and held-out scores."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd

from roofcast.features.queries import FloatArray
from roofcast.training.jobs.group_effects import GroupEffects, KeyArray
from roofcast.training.jobs.held_out import (
    BoolArray,
    ClassErrors,
    ErrorRows,
    HeldOutErrors,
    fit_effects,
    framework_classes,
)
from roofcast.training.learner.errors.error_distribution import ErrorScaleModel
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal


@dataclass(frozen=True)
class LogErrorModel:
    """Distribution of log(measured / estimated) of one metric.

    - `scale`: Size of the errors of jobs.
    - `effects`: In units of the scale.
    - `of_class`: By class of frameworks: tuned ones and ordinary trainers, or all together.
    - `of_lineage`, `of_owner`: Distributions of standardised errors whose lineage, or whose stack's owner, was held
      out, by class.
    """

    scale: ErrorScaleModel
    effects: GroupEffects
    of_class: tuple[ClassErrors, ...]
    of_lineage: tuple[GroupedConformal, ...]
    of_owner: tuple[GroupedConformal, ...]

    @classmethod
    def fit(cls, rows: ErrorRows, held_out: HeldOutErrors) -> Self:
        """Return the distribution fitted to rows, by what was learnt with groups of the same rows held out."""
        public, size = rows.is_public, held_out.scale.predict(rows.x)
        every = np.arange(len(rows.error))
        effects = fit_effects(held_out.sd, held_out.space, rows, every, size, learns_uploads=held_out.learns_uploads)
        classes = [public & one for one in framework_classes(rows, rows.is_measured & public)]
        of_lineage, of_owner = (
            tuple(GroupedConformal(scores[inside], pd.Series(groups[inside])) for inside in classes)
            for scores, groups in zip(held_out.scores, (rows.lineage, rows.owner), strict=True)
        )
        return cls(
            held_out.scale, effects, held_out.of_class, of_lineage, of_owner
        )  # fmt: skip

    @property
    def highest_level(self) -> float:
        """Highest level that the number of lineages, and of owners of each class, supports."""
        return min(one.highest_level for one in (*self.of_lineage, *self.of_owner))

    def _classes(self, plain: BoolArray) -> list[BoolArray]:
        return [~plain, plain] if len(self.of_class) > 1 else [np.ones(len(plain), dtype=bool)]

    def predict(self, x: FloatArray, keys: KeyArray, plain: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the log error of each job: shapes (n_job,).

        `plain`: shape (n_job,): whether the job is one of an ordinary trainer.
        """
        size = self.scale.predict(x)
        mean, spread = self.effects.predict(keys, x)
        is_known, sd = self.effects.knows_stack(keys), size * spread
        share, carried = np.ones(len(sd)), np.empty(len(sd))
        for inside, own in zip(self._classes(plain), self.of_class, strict=True):
            share[inside & ~is_known] = own.carry_over
            carried[inside] = np.where(is_known, own.lineage.carry(sd), own.owner.carry(sd))[inside]
        return share * size * mean, carried

    def condition_on(self, x: FloatArray, keys: KeyArray, error: FloatArray) -> Self:
        """Return the distribution that also knows the errors of own runs."""
        return replace(self, effects=self.effects.append(keys, x, error / self.scale.predict(x)))

    def distribution(self, keys: KeyArray, plain: BoolArray) -> list[tuple[BoolArray, GroupedConformal]]:
        """Return flags of jobs of stacks that are unknown and known, by class, each with its standardised errors."""
        is_known = self.effects.knows_stack(keys)
        classes = [flags & inside for flags in (~is_known, is_known) for inside in self._classes(plain)]
        return list(zip(classes, (*self.of_owner, *self.of_lineage), strict=True))
