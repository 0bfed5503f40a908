"""Extrapolation: in which columns a row lies outside the training data."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from roofcast.data.specs import AcceleratorSpec
from roofcast.features.descriptors.prediction_input import PredictionInput, factorize
from roofcast.training.learner.prediction import Prediction
from roofcast.training.lifecycle.bundles.bundle import ModelBundle


def outside_columns(
    prediction: Prediction, table: PredictionInput, bundle: ModelBundle, accelerators: Mapping[str, AcceleratorSpec]
) -> list[tuple[str, ...]]:
    """Return, for each row, what is outside the training data: engine, accelerator vendor, features out of range.

    A blank engine is never outside.

    Parameters
    ----------
    prediction, table
        Predictions of the rows, and the rows, in one order.
    accelerators
        Specs by the ids in the table.
    """
    vendors = {accelerators[name].vendor for name in bundle.accelerators if name in accelerators}
    engine_index, engines = factorize(table["engine"])
    accelerator_index, ids = factorize(table["accelerator"])
    is_engine_new = np.array([bool(name) and name not in bundle.engines for name in engines])[engine_index]
    is_vendor_new = np.array([accelerators[str(id_)].vendor not in vendors for id_ in ids])[accelerator_index]
    is_new = zip(is_engine_new.tolist(), is_vendor_new.tolist(), strict=True)
    names = bundle.predictor.extrapolated_features(prediction.features).tolist()
    return [
        (*itertools.compress(("engine", "accelerator.vendor"), new), *features.split())
        for new, features in zip(is_new, names, strict=True)
    ]
