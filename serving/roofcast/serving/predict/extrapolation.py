"""Extrapolation: in which columns a row lies outside the training data."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from roofcast.data.specs import AcceleratorSpec
from roofcast.features.descriptors.prediction_input import PredictionInput, factorize
from roofcast.training.lifecycle.bundles.bundle import ModelBundle

FloatArray = npt.NDArray[np.float64]


def outside_columns(
    features: FloatArray, table: PredictionInput, bundle: ModelBundle, accelerators: Mapping[str, AcceleratorSpec]
) -> list[tuple[str, ...]]:
    """Return, for each row, what is outside the training data: engine, accelerator vendor, features out of range.

    A blank engine is never outside.

    Parameters
    ----------
    features : shape (n_row, n_feature)
        Columns of the learner.
    table
        The rows, in the same order.
    accelerators
        Specs by the ids in the table.
    """
    vendors = {accelerators[name].vendor for name in bundle.accelerators if name in accelerators}
    engine_index, engines = factorize(table["engine"])
    accelerator_index, ids = factorize(table["accelerator"])
    is_engine_new = np.array([bool(name) and name not in bundle.engines for name in engines])[engine_index]
    is_vendor_new = np.array([accelerators[str(id_)].vendor not in vendors for id_ in ids])[accelerator_index]
    is_new = zip(is_engine_new.tolist(), is_vendor_new.tolist(), strict=True)
    names = bundle.predictor.extrapolated_features(features)
    return [
        (*itertools.compress(("engine", "accelerator.vendor"), new), *outside)
        for new, outside in zip(is_new, names, strict=True)
    ]
