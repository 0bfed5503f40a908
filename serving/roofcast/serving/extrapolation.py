"""Where a question lies beyond what was measured."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from roofcast.data.specs import AcceleratorSpec
from roofcast.training.bundle import ModelBundle
from roofcast.training.predictor import Prediction


def outside_columns(
    prediction: Prediction, table: pd.DataFrame, bundle: ModelBundle, accelerators: Mapping[str, AcceleratorSpec]
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
    vendors = table["accelerator"].map(lambda name: accelerators[name].vendor)
    found = []
    for features, engine, vendor in zip(
        bundle.predictor.outside(prediction.features), table["engine"].astype(str), vendors, strict=True
    ):
        unseen = [
            *(["engine"] if engine and engine not in bundle.engines else []),
            *(["accelerator.vendor"] if vendor not in measured else []),
        ]
        found.append((*unseen, *str(features).split()))
    return found
