"""Measurements that a predictor learnt from, and an index of them by configuration and workload."""

from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.descriptors.config_hash import HashArray, joint_hashes
from roofcast.features.queries import FloatArray, IndexArray, Queries, QueryTable, descriptor_arrays
from roofcast.training.learner.errors.group_keys import TERMS, GroupKeys, stack_keys, workload_coordinates

Support = Literal["measured", "near", "extrapolated"]

POINT_COLUMNS: Final = (
    "model", "accelerator", "n_accelerator", "engine", "engine_version", "weight_precision", "kv_precision",
    "n_input_token", "n_output_token", "load", "concurrency", "request_rate", "statistic", "stack", "campaign",
    "date",
)  # fmt: skip
"""Stored columns of a measurement, besides its metrics."""

NEAR: Final = ("model", "engine", "accelerator")
"""Grouping, one of `TERMS`, within which a measurement is near."""

_NEAR_INDEX: Final = tuple(TERMS).index(NEAR)

CLOSE: Final = (
    "workload.n_input_token", "workload.n_output_token", "workload.concurrency", "workload.request_rate_per_s",
)  # fmt: skip
"""Descriptors that may differ by `TOLERANCE` where the same was measured."""

EQUAL: Final = (
    "workload.is_mean", "workload.quantile", "workload.prefix_cache_ratio", "config.n_draft_token",
)  # fmt: skip
"""Descriptors that may not differ, besides the configuration."""

DESCRIPTORS: Final = (*CLOSE, *EQUAL, "config.date")
"""Stored descriptors of a measurement."""

TOLERANCE: Final = 0.106
"""Difference of two workloads, in natural logarithms, up to which they count as equal: a tenth of the greater."""


class Match(NamedTuple):
    """What was measured of questions: shapes (n_question,).

    - `row`: Of the newest measurement of the same configuration, lengths and load; -1 where there is none.
    - `is_near`: Whether the model was measured with the engine on the accelerator.
    """

    row: IndexArray
    is_near: npt.NDArray[np.bool_]

    @property
    def support(self) -> list[Support]:
        """What each answer rests on."""
        pairs = zip((self.row >= 0).tolist(), self.is_near.tolist(), strict=True)
        return ["measured" if same else "near" if near else "extrapolated" for same, near in pairs]


@dataclass(frozen=True, slots=True)
class MeasuredPoints:
    """Measurements that a predictor learnt from.

    - `rows`: Measurements: `POINT_COLUMNS` and metrics.
    - `keys`: Hashes of `roofcast.features.descriptors.config_hash`, aligned with `rows`.
    - `workload`: `DESCRIPTORS`, aligned with `rows`.
    - `place`: By metric, index in `rows` of each training point of the random effects that measured it, as
      `ErrorDistribution.training_row`.
    """

    rows: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=[*POINT_COLUMNS]))
    keys: pd.DataFrame = field(default_factory=pd.DataFrame)
    workload: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=[*DESCRIPTORS], dtype=float))
    place: dict[str, IndexArray] = field(default_factory=dict)
    group_keys: GroupKeys = field(init=False, repr=False)
    _order: IndexArray = field(init=False, repr=False)
    _configuration: HashArray = field(init=False, repr=False)
    _near: HashArray = field(init=False, repr=False)
    _workload: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Sort the measurements by configuration, then by date."""
        hashes = {str(name): self.keys[name].to_numpy() for name in self.keys}
        keys = joint_hashes(hashes, tuple(TERMS)) if hashes else np.empty((0, len(TERMS)), dtype=np.uint64)
        d = {name: self.workload[name].to_numpy(dtype=float) for name in DESCRIPTORS}
        stacks = stack_keys(self.rows["stack"].to_numpy(dtype=object))
        order = np.lexsort((d["config.date"], keys[:, -1]))
        values = {
            "group_keys": GroupKeys(keys, workload_coordinates(d), stacks),
            "_order": order,
            "_configuration": keys[order, -1],
            "_near": np.unique(keys[:, _NEAR_INDEX]),
            "_workload": _matched(d)[order],
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def match(self, queries: QueryTable, keys: GroupKeys) -> Match:
        """Return what was measured of questions, whose group keys are `keys`.

        Statistic, prefix hits and drafted tokens are the same; lengths and load differ by `TOLERANCE` at most.
        """
        wanted, workload = keys.keys[:, -1], _matched(descriptor_arrays(queries))
        start = np.searchsorted(self._configuration, wanted)
        count = np.searchsorted(self._configuration, wanted, side="right") - start
        question = np.repeat(np.arange(len(wanted)), count)
        first = np.repeat(start - (np.cumsum(count) - count), count)
        point = first + np.arange(len(question))
        distance = np.abs(self._workload[point] - workload[question])
        is_same = (distance[:, : len(CLOSE)] <= TOLERANCE).all(axis=1) & (distance[:, len(CLOSE) :] == 0).all(axis=1)
        row = np.full(len(wanted), -1, dtype=np.intp)
        row[question[is_same]] = self._order[point[is_same]]  # the last one assigned is the newest
        return Match(row, np.isin(keys.keys[:, _NEAR_INDEX], self._near))


def _matched(d: Queries) -> FloatArray:
    close = np.log(np.nan_to_num(np.stack([d[name] for name in CLOSE], axis=1), nan=1.0))
    return np.hstack([close, np.nan_to_num(np.stack([d[name] for name in EQUAL], axis=1))])
