from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.lifecycle.gate.inference_trial import InferenceTrial


@pytest.mark.parametrize("ignored", ["key:ci/rig", ""])
def test_intervals_are_judged_by_rows_of_others_stacks(subset: TrainingSet, ignored: str) -> None:
    is_ignored = np.arange(len(subset.X)) % 2 == 0
    data = replace(subset, stacks=subset.stacks.mask(is_ignored, ignored))
    scores = np.tile(np.where(is_ignored, 9.0, 1.0), (3, 1))
    tables = {"held_out_": data.y, "stack_held_out_": data.y, "scores_": {"tpot_s": scores}}
    predictor: Any = SimpleNamespace(**tables, error_distributions_={"tpot_s": SimpleNamespace(conformal=None)})
    ((metric, _, of_others),) = InferenceTrial(predictor, data).coverages()
    assert (metric, of_others.quantile(of_others.highest_level)) == ("tpot_s", 1.0)
