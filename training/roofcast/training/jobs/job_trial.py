"""The trial of a candidate of training jobs."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final, Self

import numpy as np
import pandas as pd

from roofcast.features.queries import FloatArray
from roofcast.training.jobs.held_out import HeldOutErrors
from roofcast.training.jobs.job_predictor import LEARNS_UPLOADS, JobPredictor, MetricErrors
from roofcast.training.jobs.job_table import framework_families
from roofcast.training.jobs.run_set import RunSet
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal
from roofcast.training.learner.ratio_model import Progress
from roofcast.training.lifecycle.gate.trial import HELD_OUT, Recipe, Trial

Corrections = Mapping[str, FloatArray]
"""Held-out corrections by metric: shape (2, n_run), of lineages and of owners."""

CELL: Final = ("accelerator", "model", "method", "compute_precision", "n_accelerator")
"""Columns of a configuration, which the bootstrap draws where there are too few lineages."""


class JobTrial(Trial):
    """Held-out corrections of a candidate and of recipes, as predictions over estimates."""

    def __init__(
        self,
        errors: Mapping[str, MetricErrors],
        corrections: Corrections,
        slices: pd.DataFrame,
        predictor: JobPredictor | None = None,
    ) -> None:
        self._errors = errors
        self._predictor = predictor
        self.slices = slices
        measured = {name: np.where(one.rows.is_measured, one.rows.error, np.nan) for name, one in errors.items()}
        self.measured = self._table(measured)
        self.held_out = self._tables(corrections)

    @classmethod
    def of(cls, predictor: JobPredictor, data: RunSet) -> Self:
        """Return the trial of a predictor that was just fitted to runs."""
        corrections = {name: held_out.correction for name, held_out in predictor.held_out_.items()}
        return cls(data.errors, corrections, build_slices(data), predictor)

    def refit(
        self, recipe: Recipe, progress: Progress | None = None, *, holds_out_stacks: bool
    ) -> list[pd.DataFrame]:
        """Return the corrections by the runs that the recipe learns from."""
        fitted = {name: self._fit(recipe, name, one, progress) for name, one in self._errors.items()}
        return self._tables(fitted)[: 1 + holds_out_stacks]

    def _fit(self, recipe: Recipe, name: str, errors: MetricErrors, progress: Progress | None) -> FloatArray:
        fit = partial(HeldOutErrors.fit, errors.rows, learns_uploads=LEARNS_UPLOADS[name], progress=progress)
        label = f"{recipe.name}, {name}, held-out lineages and stacks"
        return fit(learns=recipe.learns[errors.index], label=label).correction

    def _tables(self, corrections: Corrections) -> list[pd.DataFrame]:
        return [self._table({name: parts[i] for name, parts in corrections.items()}) for i in range(len(HELD_OUT))]

    def _table(self, logarithms: Mapping[str, FloatArray]) -> pd.DataFrame:
        table = pd.DataFrame(np.nan, index=range(len(self.slices)), columns=list(self._errors))
        for name, values in logarithms.items():
            table.loc[self._errors[name].index, name] = np.exp(values)
        return table

    def coverages(self) -> Iterator[tuple[str, GroupedConformal, GroupedConformal]]:
        """Yield the quantiles with lineages, and with owners of stacks, held out."""
        if self._predictor is None:
            return
        for name, one in self._errors.items():
            rows, model = one.rows, self._predictor.models_[name]
            others = rows.is_public & (rows.owner != "")
            scores = self._predictor.held_out_[name].scores
            for i, groups in enumerate(rows.held_out_groups):
                for inside, own in zip(rows.classes(rows.is_measured & rows.is_public), model.of_class, strict=True):
                    at = others & inside
                    conformal = (own.of_lineage, own.of_owner)[i]
                    yield name, conformal, GroupedConformal(scores[i, at], pd.Series(groups[at]))

    @staticmethod
    def settings(predictor: JobPredictor) -> None:
        """Return None: the learner has no settings."""
        del predictor

    @staticmethod
    def levels(predictor: JobPredictor) -> Mapping[str, float]:
        """Return the highest levels, of lineages and of stacks that nobody measured."""
        return {name: model.highest_level for name, model in predictor.models_.items()}


def build_slices(data: RunSet) -> pd.DataFrame:
    """Return lineage, configuration, accelerator, framework and owner of runs, as `find_regressions` takes them."""
    runs = data.measurements
    cell = runs[[*CELL]].astype(str).agg("|".join, axis=1)
    return pd.DataFrame({
        "lineage": data.groups, "cell": cell, "accelerator": runs["accelerator"],
        "framework": framework_families(runs), "stack": data.stacks,
    })  # fmt: skip
