"""Blanked rows: measured questions in which a column that they state is left blank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.specs import AcceleratorSpec, ModelSpec
from roofcast.features.descriptors.assumptions import USUAL, assumption_masks
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.training.dataset.stacks import is_uploaded, stack_owners

CONVENTIONS: Final = ("weight_precision", "concurrency")
"""Columns whose blank is no doubt: the checkpoint's precision is its own, and one request in flight is a question."""

MAX_ROW_OF_OWNER: Final = 40
"""Rows of one owner that are blanked, evenly over its rows."""


@dataclass(frozen=True, slots=True)
class BlankedRows:
    """Descriptors of rows with a column left blank.

    Parameters
    ----------
    X : shape (n_blanked, n_descriptor)
        Its index names the rows among those of the training set.
    stated_share
        Share of the training rows in which the column matters that state it, the mean over owners.
    """

    X: pd.DataFrame
    stated_share: float


def build_blanked_rows(
    measurements: pd.DataFrame,
    stacks: pd.Series,
    models: Mapping[str, ModelSpec],
    accelerators: Mapping[str, AcceleratorSpec],
) -> dict[str, BlankedRows]:
    """Return rows of each column of `USUAL` that some public rows state; all tables share one index."""
    public = measurements[~is_uploaded(stacks).to_numpy()]
    owners = stack_owners(stacks[public.index])
    table = {str(name): public[name].to_numpy() for name in public}
    no_load = np.zeros(len(public), dtype=bool)
    is_blank = assumption_masks(table, no_load)
    blanked = {}
    for name in (column for column in USUAL if column not in CONVENTIONS and column in table):
        blank = np.full_like(table[name], np.nan if table[name].dtype.kind == "f" else "")
        matters = assumption_masks(table | {name: blank}, no_load)[name]
        is_stated = matters & ~is_blank[name]
        if is_stated.any():
            rows = _spread(owners[is_stated])
            X = describe(public.loc[rows].assign(**{name: blank[0]}), models, accelerators)
            share = pd.Series(is_stated, index=public.index)[matters].groupby(owners[matters]).mean()
            blanked[name] = BlankedRows(X, float(share.mean()))
    return blanked


def _spread(owners: pd.Series) -> pd.Index:
    """Return the rows of each owner, `MAX_ROW_OF_OWNER` at most and evenly spread.

    Examples
    --------
    >>> _spread(pd.Series(["a"] * 3, index=[4, 5, 9])).tolist()
    [4, 5, 9]
    """
    place = owners.groupby(owners).cumcount()
    size = owners.groupby(owners).transform("size")
    step = np.maximum(size / MAX_ROW_OF_OWNER, 1.0)
    chosen: pd.Index = owners.index[np.floor(place / step) != np.floor((place - 1) / step)]
    return chosen
