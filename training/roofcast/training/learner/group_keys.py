"""Where questions stand to each other: what they share, and how far their workloads lie apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.arrays import descriptor_arrays
from roofcast.features.descriptors.config_hash import HashArray, config_hashes, joint_hashes

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

TERMS: Final[dict[tuple[str, ...], float]] = {
    ("engine", "load"): 0.4,
    ("accelerator",): 0.2,
    ("accelerator", "engine", "load"): 0.4,
    ("accelerator", "engine", "precision"): 0.3,
    ("kind", "engine"): 0.2,
    ("kind", "engine", "accelerator", "precision"): 0.3,
    ("model",): 0.2,
    ("model", "engine"): 0.2,
    ("model", "engine", "accelerator"): 0.3,
    ("model", "engine", "accelerator", "precision", "load"): 0.3,
    ("model", "engine", "accelerator", "precision", "load", "split"): 0.3,
}
"""What questions share, and the prior median of its standard deviation."""

OF_STACK: Final[dict[tuple[str, ...], float]] = {
    ("engine", "load"): 0.2,
    ("accelerator", "engine", "load"): 0.3,
    ("model", "engine", "accelerator", "precision", "load"): 0.3,
}
"""What questions of one stack share besides, some of `TERMS`: how it was built, set and measured."""

OF_STACK_AT: Final = tuple(tuple(TERMS).index(term) for term in OF_STACK)

YOURS: Final = 0
"""Key of the stack that questions are about: that of whoever asks."""

OWN: Final = tuple(TERMS)[-1]
"""What two questions must share for their workloads to be compared."""

GRAIN: Final = 0.5 * float(np.log(2))


@dataclass(frozen=True, slots=True)
class GroupKeys:
    """Where questions stand to each other.

    Parameters
    ----------
    keys : shape (n_question, n_term)
        What each question has in the place of each term.
    workload : shape (n_question, 3)
        Natural logarithms of input length, output length and load, to half an octave: what lies nearer is the same to
        an effect that fades over two octaves.
    stack : shape (n_question,)
        Keys of whose stack each is about; `YOURS` for whoever asks.
    """

    keys: HashArray
    workload: FloatArray
    stack: HashArray

    def take(self, rows: npt.NDArray[np.intp] | BoolArray) -> GroupKeys:
        """Return some of them."""
        return GroupKeys(self.keys[rows], self.workload[rows], self.stack[rows])

    def followed_by(self, other: GroupKeys) -> GroupKeys:
        """Return these and then the others."""
        return GroupKeys(
            np.vstack([self.keys, other.keys]),
            np.vstack([self.workload, other.workload]),
            np.append(self.stack, other.stack),
        )

    def asked(self) -> GroupKeys:
        """Return them as someone asks, who has none of these stacks but their own."""
        return GroupKeys(self.keys, self.workload, np.full_like(self.stack, YOURS))


def places(descriptors: pd.DataFrame, stacks: pd.Series | None = None) -> GroupKeys:
    """Return where questions stand to each other.

    Parameters
    ----------
    descriptors : shape (n_question, n_descriptor)
    stacks : shape (n_question,)
        Names of whose stack each is about, found by their index; empty, missing, or None for all, for whoever asks.
    """
    d = descriptor_arrays(descriptors)
    load = np.where(np.isnan(d["workload.concurrency"]), d["workload.request_rate_per_s"], d["workload.concurrency"])
    sizes = [d["workload.n_input_token"], d["workload.n_output_token"], np.where(np.isnan(load), 1.0, load)]
    keys = joint_hashes(config_hashes(descriptors), tuple(TERMS))
    stack = np.full(len(keys), YOURS, dtype=np.uint64)
    if stacks is not None:
        names = stacks.reindex(descriptors.index).fillna("")
        stack = np.where(names == "", stack, pd.util.hash_array(names.to_numpy(dtype=object)))
    return GroupKeys(keys, np.rint(np.log(np.stack(sizes, axis=1)) / GRAIN) * GRAIN, stack)


def anchor_rows(X: GroupKeys) -> npt.NDArray[np.intp]:
    """Return rows of each configuration of each stack: of least load, of the median and its neighbour, of greatest.

    Neighbours tell noise from what fades with distance.
    """
    table = pd.DataFrame(
        {"own": X.keys[:, -1], "stack": X.stack, "load": X.workload[:, -1], "row": np.arange(len(X.keys))}
    )
    table = table.sort_values(["own", "stack", "load", "row"])
    alike = table.groupby(["own", "stack"])["row"]
    last, place = alike.transform("size").to_numpy() - 1, alike.cumcount().to_numpy()
    is_wanted = np.isin(place - last // 2, (0, 1)) | (place == 0) | (place == last)
    return np.sort(table["row"].to_numpy()[is_wanted])
