"""Measurements that a predictor learnt from, and an index of them by configuration and workload."""

from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.descriptors.config_hash import HashArray, joint_hash, joint_hashes
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

_LOAD: Final = [CLOSE.index(f"workload.{name}") for name in ("concurrency", "request_rate_per_s")]
_REACH: Final = TOLERANCE + 1e-6
_SPAN: Final = 256.0
"""Distance of two groups on the axis of loads: more than the logarithms of any two loads differ by."""


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
    _near: HashArray = field(init=False, repr=False)
    _groups: HashArray = field(init=False, repr=False)
    _position: FloatArray = field(init=False, repr=False)
    _workload: FloatArray = field(init=False, repr=False)
    _row: IndexArray = field(init=False, repr=False)
    _age: IndexArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Index the newest measurement of each configuration and workload by their group, then by load."""
        hashes = {str(name): self.keys[name].to_numpy() for name in self.keys}
        keys = joint_hashes(hashes, tuple(TERMS)) if hashes else np.empty((0, len(TERMS)), dtype=np.uint64)
        d = {name: self.workload[name].to_numpy(dtype=float) for name in DESCRIPTORS}
        stacks = stack_keys(self.rows["stack"].to_numpy(dtype=object))
        groups, group = np.unique(_exact_hash(keys, d), return_inverse=True)
        workload = _log_workload(d)
        place = _SPAN * group + _log_load(workload)
        age = np.empty(len(group), dtype=np.intp)
        age[np.argsort(d["config.date"], kind="stable")] = np.arange(len(group))
        order = np.lexsort((age, *workload.T, place))
        same = np.column_stack([place, workload])[order]
        order = order[np.append((same[1:] != same[:-1]).any(axis=1), True)[: len(order)]]  # the newest of equal ones
        values = {
            "group_keys": GroupKeys(keys, workload_coordinates(d), stacks),
            "_near": np.unique(keys[:, _NEAR_INDEX]),
            "_groups": groups,
            "_position": place[order],
            "_workload": workload[order],
            "_row": order,
            "_age": age[order],
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def match(self, queries: QueryTable, keys: GroupKeys) -> Match:
        """Return what was measured of questions, whose group keys are `keys`.

        Statistic, prefix hits and drafted tokens are the same; lengths and load differ by `TOLERANCE` at most.
        """
        d = descriptor_arrays(queries)
        wanted, workload = _exact_hash(keys.keys, d), _log_workload(d)
        row = np.full(len(wanted), -1, dtype=np.intp)
        group = np.searchsorted(self._groups, wanted)
        asked = np.flatnonzero(np.append(self._groups, np.uint64(0))[group] == wanted)
        place = _SPAN * group[asked] + _log_load(workload[asked])
        start, end = (np.searchsorted(self._position, place + way * len(_LOAD) * _REACH) for way in (-1, 1))
        count = end - start
        question = np.repeat(asked, count)
        point = np.repeat(start - (np.cumsum(count) - count), count) + np.arange(len(question))
        is_same = (np.abs(self._workload[point] - workload[question]) <= TOLERANCE).all(axis=1)
        question, point = question[is_same], point[is_same]
        by_age = np.argsort(self._age[point])
        row[question[by_age]] = self._row[point[by_age]]  # the last one assigned is the newest
        return Match(row, np.isin(keys.keys[:, _NEAR_INDEX], self._near))


def _exact_hash(keys: HashArray, d: Queries) -> HashArray:
    equal = {name: (np.nan_to_num(d[name]) + 0.0).view(np.uint64) for name in EQUAL}
    return joint_hash({"configuration": keys[:, -1], **equal}, ("configuration", *EQUAL))


def _log_workload(d: Queries) -> FloatArray:
    return np.log(np.nan_to_num(np.stack([d[name] for name in CLOSE], axis=1), nan=1.0))


def _log_load(workload: FloatArray) -> FloatArray:
    load: FloatArray = workload[:, _LOAD].sum(axis=1)
    return load
