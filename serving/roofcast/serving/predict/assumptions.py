"""The assumed columns that an answer lists."""

from __future__ import annotations

from itertools import compress

import numpy as np

from roofcast.features.descriptors.assumptions import USUAL, assumption_masks
from roofcast.serving.predict.row_parser import ASSUMED_LOAD, Table


def assumed_columns(table: Table) -> list[str]:
    """Return the columns of `USUAL` that each parsed row leaves to it, separated by spaces."""
    masks = np.column_stack([*assumption_masks(table, table[ASSUMED_LOAD]).values()])
    codes, first, inverse = np.unique(masks @ (1 << np.arange(len(USUAL))), return_index=True, return_inverse=True)
    texts = [" ".join(compress(USUAL, masks[i].tolist())) for i in first.tolist()]
    return [texts[i] for i in inverse.tolist()] if len(codes) > 1 else texts * len(masks)
