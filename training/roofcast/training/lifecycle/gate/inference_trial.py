"""The trial of a candidate of inference."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from roofcast.features.descriptors.config_hash import CELL, config_hashes, joint_hash
from roofcast.features.queries import BoolArray
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.stacks import competent_rows, is_uploaded, stack_owners
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.carry_over import fit_carry_over
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal, Origins, pool_scores
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.learner.ratio_model import (
    Progress,
    RatioModel,
    fit_held_out,
    predict_by_fold,
    predict_held_out,
)
from roofcast.training.lifecycle.gate.trial import Recipe, Trial


class InferenceTrial(Trial):
    """Held-out predictions of a predictor that was just fitted to a training set, and of recipes."""

    def __init__(self, predictor: RoofcastPredictor, data: TrainingSet) -> None:
        self._predictor = predictor
        self._data = data
        self.measured = data.y
        self.slices = build_slices(data)
        self.held_out = [predictor.held_out_, predictor.stack_held_out_]

    def refit(
        self, recipe: Recipe, progress: Progress | None = None, *, holds_out_stacks: bool
    ) -> list[pd.DataFrame]:
        """Return the predictions of the rows that judge; the others are NaN."""
        data, wanted = self._data, np.logical_or.reduce(recipe.judged)
        model = RatioModel(recipe.settings, self._predictor.metrics, self._predictor.coefficients)
        tables = [
            predict_held_out(
                model, data.X, data.y, data.groups, progress,
                stacks=data.stacks, trainable=recipe.learns, judged=wanted,
            )
        ]  # fmt: skip
        if holds_out_stacks:
            tables.append(predict_stacks_held_out(model, data, recipe.learns, wanted, progress))
        return tables

    def coverages(self) -> Iterator[tuple[str, GroupedConformal, GroupedConformal]]:
        """Yield the quantiles of all metrics that rows of others' stacks have."""
        stacks = self._data.stacks
        others = (~is_uploaded(stacks) & (stacks != "")).to_numpy()
        origins = build_origins(self._data).take(others)
        for metric, scores in self._predictor.scores_.items():
            if not np.isnan(scores[:, others]).all():
                conformal = self._predictor.error_distributions_[metric].conformal
                yield metric, conformal, pool_scores(scores[:, others], origins)

    @staticmethod
    def settings(predictor: RoofcastPredictor) -> TrainingConfig:
        """Return the configuration."""
        return predictor.config or TrainingConfig()

    @staticmethod
    def levels(predictor: RoofcastPredictor) -> Mapping[str, float]:
        """Return the highest levels, of stacks that nobody measured."""
        distributions = predictor.error_distributions_
        return {metric: distributions[metric].conformal.highest_level for metric in predictor.metrics_}


def build_origins(data: TrainingSet) -> Origins:
    """Return where the rows come from."""
    is_competent = competent_rows(data.X, data.stacks) & ~is_uploaded(data.stacks)
    return Origins(data.groups, stack_owners(data.stacks), is_competent)


def build_slices(data: TrainingSet) -> pd.DataFrame:
    """Return the lineage, cell, accelerator and owner of the stack of each row, as `find_regressions` takes them."""
    cells = joint_hash(config_hashes(data.X), CELL)
    accelerator, stack = data.measurements["accelerator"], stack_owners(data.stacks)
    return pd.DataFrame({"lineage": data.groups, "cell": cells, "accelerator": accelerator, "stack": stack})


def predict_stacks_held_out(
    model: RatioModel, data: TrainingSet, trainable: BoolArray, judged: BoolArray, progress: Progress | None = None
) -> pd.DataFrame:
    """Return predictions of judged rows from what is learnt without the owner of their stack; the others are NaN."""
    owners = stack_owners(data.stacks)
    folds = fit_held_out(
        model, data.X, data.y, data.groups, progress,
        trainable=trainable, held_out=owners, stacks=data.stacks, judged=judged,
    )  # fmt: skip
    is_public = trainable & ~is_uploaded(data.stacks).to_numpy()
    measured = data.y.where(np.broadcast_to(is_public[:, None], data.y.shape))
    shares = fit_carry_over(folds, data.X, measured, build_origins(data))
    return predict_by_fold([fold.carried_over(*shares) for fold in folds], data.X)
