"""The trial of a candidate: what the gate reads of it, and how the recipes that it is compared with are fitted."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from roofcast.features.queries import BoolArray
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal
from roofcast.training.learner.ratio_model import Progress

HELD_OUT: Final = ("", ", stacks held out")
"""What is held out in each table of predictions, in reasons: lineages, and owners of stacks."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe that a candidate is compared with.

    - `learns`: shape (n_row,). Rows that it learns from.
    - `judged`: tuple of shape (n_row,). Sets of rows that judge, one after the other.
    - `holds_out_stacks`: Whether owners of stacks are held out, besides lineages.
    """

    name: str
    settings: Any
    learns: BoolArray
    judged: tuple[BoolArray, ...]
    holds_out_stacks: bool = True


class Trial(ABC):
    """Held-out predictions of a candidate and of recipes for the same rows; one class for each target."""

    measured: pd.DataFrame
    """Shape (n_row, n_metric)."""

    slices: pd.DataFrame
    """As `find_regressions` takes them."""

    held_out: list[pd.DataFrame]
    """Predictions of the candidate for each of `HELD_OUT`: shapes (n_row, n_metric); NaN where there is none."""

    @abstractmethod
    def refit(
        self, recipe: Recipe, progress: Progress | None = None, *, holds_out_stacks: bool
    ) -> list[pd.DataFrame]:
        """Return the predictions of a recipe for each of `HELD_OUT`, or the first alone."""

    @abstractmethod
    def coverages(self) -> Iterator[tuple[str, GroupedConformal, GroupedConformal]]:
        """Yield a metric, the candidate's conformal quantiles, and those of the rows of others' stacks."""

    @staticmethod
    @abstractmethod
    def settings(predictor: Any) -> Any:
        """Return the settings of a predictor's learner."""

    @staticmethod
    @abstractmethod
    def levels(predictor: Any) -> Mapping[str, float]:
        """Return the highest level of the intervals of each metric that a predictor predicts."""

    def judges_stacks(self, recipe: Recipe) -> bool:
        """Return whether a recipe is also compared with owners of stacks held out."""
        return recipe.holds_out_stacks and bool(self.held_out[1].notna().any(axis=None))
