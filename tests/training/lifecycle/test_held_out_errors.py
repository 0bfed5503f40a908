from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.training.learner.errors.grouped_conformal import GroupedConformal
from roofcast.training.lifecycle.held_out_errors import FILE, SPLITS, read_held_out_errors, write_held_out_errors
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET
from roofcast.training.lifecycle.shipped import load_shipped


def a_predictor() -> Any:
    scores = np.array([[0.5, 1.0, 2.0, np.nan], [1.0, np.nan, 0.5, 2.0]])
    conformals = [GroupedConformal(row, pd.Series(list("abcd"))) for row in scores]
    distribution = SimpleNamespace(lineage_conformal=conformals[0], conformal=conformals[1])
    return SimpleNamespace(
        held_out_=pd.DataFrame({"tpot_s": [1.0, 2.0, 4.0, 8.0]}),
        stack_held_out_=pd.DataFrame({"tpot_s": [2.0, np.nan, 4.0, 8.0]}),
        scores_={"tpot_s": scores},
        error_distributions_={"tpot_s": distribution},
    )


def test_errors_are_logarithms_of_measured_over_predicted_and_levels_rise_with_the_score(tmp_path: Path) -> None:
    path = tmp_path / "errors.csv.xz"
    write_held_out_errors(a_predictor(), pd.DataFrame({"tpot_s": [2.0, 2.0, np.nan, 4.0]}), path)
    stored = read_held_out_errors(path)
    assert tuple(stored) == SPLITS
    assert stored["lineage"].error["tpot_s"].tolist() == pytest.approx([0.693, 0.0, np.nan, -0.693], nan_ok=True)
    assert stored["stack"].error["tpot_s"].tolist() == pytest.approx([0.0, np.nan, np.nan, -0.693], nan_ok=True)
    level = stored["lineage"].level["tpot_s"]
    assert level[:3].is_monotonic_increasing
    assert level[:3].between(0, 1).all()
    assert np.isnan(level[3])


def test_the_shipped_errors_are_those_of_the_shipped_predictor() -> None:
    n_row = len(load_shipped(INFERENCE_TARGET).row_ids)
    assert all(len(stored.error) == n_row for stored in read_held_out_errors(FILE).values())
