"""Grouped cross-validation folds. A random split would put near-copies of training rows into the test fold."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.queries import BoolArray, IndexArray


def leave_one_group_out(
    groups: pd.Series, max_fold: int | None = None, counts: BoolArray | None = None
) -> Iterator[tuple[IndexArray, IndexArray]]:
    """Yield (training rows, held-out rows); each group is held out exactly once.

    With more groups than `max_fold`, groups are assigned to folds, largest first, so that folds have similar sizes.

    Raises `ValueError` if there are fewer than two groups that count, or folds.

    - `groups`: shape (n_row,)
    - `max_fold`: Largest number of folds; None for one per group.
    - `counts`: shape (n_row,). Rows that alone decide the number of folds and which groups share one; None for all.
      Groups without such a row go to these folds in turn, so that rows of API keys do not decide which others are
      held out together.

    Examples
    --------
    >>> for train, test in leave_one_group_out(pd.Series(["a", "b", "a"])):
    ...     print(train, test)
    [1] [0 2]
    [0 2] [1]
    """
    counts = np.ones(len(groups), dtype=bool) if counts is None else counts
    order, codes = np.argsort(~counts, kind="stable"), np.empty(len(groups), dtype=np.intp)
    codes[order], names = pd.factorize(groups.to_numpy()[order])
    sizes = np.bincount(codes[counts])  # of the first codes: those of groups that count
    if len(sizes) < 2:
        raise ValueError(f"grouped folds need at least two groups, got {len(sizes)}")
    if max_fold is not None and max_fold < 2:
        raise ValueError(f"max_fold must be at least 2, got {max_fold}")
    n_fold = len(sizes) if max_fold is None else min(max_fold, len(sizes))
    others = np.arange(len(names) - len(sizes)) % n_fold
    fold = np.concatenate([_assign_folds(sizes, n_fold), others])[codes]
    for i in range(n_fold):
        yield np.flatnonzero(fold != i), np.flatnonzero(fold == i)


def _assign_folds(sizes: npt.NDArray[np.intp], n_fold: int) -> IndexArray:
    fold_of_group = np.arange(len(sizes))
    if n_fold < len(sizes):
        load = np.zeros(n_fold)
        for group in np.argsort(-sizes, kind="stable"):
            fold_of_group[group] = int(load.argmin())
            load[fold_of_group[group]] += sizes[group]
    return fold_of_group
