"""Limit of the weight of rows that API keys stored, by accelerator, engine and kind of load.

Rows of keys that have not earned weight yet belong to one owner, see `roofcast.data.measurements.row_owners`.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.measurements.row_owners import UNPROVEN
from roofcast.features.descriptors.config_hash import HashArray, joint_hash
from roofcast.features.queries import FloatArray
from roofcast.training.dataset.stacks import UPLOADED, is_uploaded, stack_owners

MAX_SHARE: Final = 0.1
"""Greatest weight of one key over that of the rows that no key stored, in each group: judgement. Medians of a group
then move by at most the distance of its quantiles .5 and .55."""

MAX_UNPROVEN_SHARE: Final = 0.03
"""The same of all rows that have not earned weight: judgement."""

MAX_TOTAL_SHARE: Final = 0.3
"""The same of all keys together: judgement."""

LEVELS: Final = ((), ("accelerator",), ("engine", "load"), ("accelerator", "engine", "load"))
"""Columns of `config_hashes` that form the groups. A group in which only keys measured is limited by the others."""


def limit_uploads(weight: FloatArray, stacks: pd.Series, hashes: Mapping[str, HashArray]) -> FloatArray:
    """Return the weights, limited in every group of `LEVELS` by the total of the rows that no API key stored.

    The total of each key is at most `MAX_SHARE` of it, that of unproven rows `MAX_UNPROVEN_SHARE`, and that of all
    keys `MAX_TOTAL_SHARE`.

    `weight` and `stacks`: shape (n_row,). `hashes`: as by `config_hashes`, shapes (n_row,).
    """
    is_upload = is_uploaded(stacks).to_numpy()
    if not is_upload.any() or is_upload.all():
        return weight
    owner = stack_owners(stacks).to_numpy(dtype=object)
    shares = {UPLOADED + UNPROVEN: MAX_UNPROVEN_SHARE}
    limited = [(owner == name, shares.get(name, MAX_SHARE)) for name in pd.unique(owner[is_upload])]
    for rows, share in (*limited, (is_upload, MAX_TOTAL_SHARE)):
        factor = np.ones(len(weight))
        for level in LEVELS:
            code = pd.factorize(joint_hash(hashes, level))[0] if level else np.zeros(len(weight), dtype=np.intp)
            others = np.bincount(code, np.where(is_upload, 0.0, weight))
            own = np.bincount(code, np.where(rows, weight, 0.0), minlength=len(others))
            with np.errstate(divide="ignore", invalid="ignore"):
                limit = np.where(others > 0, np.fmin(share * others / own, 1.0), 1.0)
            factor[rows] = np.minimum(factor[rows], limit[code[rows]])
        weight = weight * factor
    return weight
