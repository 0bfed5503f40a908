"""Where a question lies beyond what was measured."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from roofcast.data.specs import AcceleratorSpec
from roofcast.features.descriptors.prediction_input import Questions, distinct
from roofcast.training.learner.predictor import Prediction
from roofcast.training.lifecycle.bundle import ModelBundle


def outside_columns(
    prediction: Prediction, table: Questions, bundle: ModelBundle, accelerators: Mapping[str, AcceleratorSpec]
) -> list[tuple[str, ...]]:
    """Return what extrapolates in each question: features out of range, engine or vendor never seen.

    A blank engine is none that was never seen: it stands for those that were measured.

    Parameters
    ----------
    prediction, table
        The questions' predictions and their rows, in one order.
    bundle
        That predicted; it knows what was measured.
    accelerators
        Specs by the ids of the table.
    """
    measured = {accelerators[name].vendor for name in bundle.accelerators if name in accelerators}
    engine, engines = distinct(table["engine"])
    part, parts = distinct(table["accelerator"])
    is_engine_new = np.array([bool(name) and name not in bundle.engines for name in engines])[engine]
    is_vendor_new = np.array([accelerators[str(name)].vendor not in measured for name in parts])[part]
    unseen = zip(is_engine_new.tolist(), is_vendor_new.tolist(), strict=True)
    return [
        (*itertools.compress(("engine", "accelerator.vendor"), new), *features.split())
        for new, features in zip(unseen, bundle.predictor.outside(prediction.features).tolist(), strict=True)
    ]
