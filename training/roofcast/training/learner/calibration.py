"""Calibration: coefficients of the analytic estimate fitted to measurements under their log-normal priors."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.config_hash import CELL, config_hashes, joint_hash
from roofcast.features.engine.coefficient_rows import coefficient_rows
from roofcast.features.engine.coefficients import (
    DEFAULT_COEFFICIENTS,
    NAMES,
    PRIORS,
    Coefficients,
    OwnerOffsets,
    StackCoefficients,
)
from roofcast.features.engine.estimate import estimate
from roofcast.features.engine.kernels.row_kernels import MEASURED_ENGINES
from roofcast.features.engine.memo import Memo
from roofcast.features.pipeline import estimate_metrics
from roofcast.features.queries import FloatArray, IndexArray, Queries, descriptor_arrays, take_rows
from roofcast.training.dataset.stacks import is_uploaded, separate_uploads, stack_owners
from roofcast.training.dataset.targets import log_ratio
from roofcast.training.learner.robust_least_squares import Blocks, levenberg_marquardt
from roofcast.training.learner.upload_limit import limit_uploads

ERROR_SCALE: Final = {"ttft_s": 0.15, "itl_s": 0.08, "tpot_s": 0.08, "output_throughput_token_per_s": 0.15}
"""Error, in natural logarithms, up to which a metric's loss is quadratic: what is left after a good fit.

Normalised TTFT is left out: over requests of different lengths it depends on the lengths as much as on the engine."""

MAX_ROWS_PER_GROUP: Final = 6.0
"""Total weight of a group against the priors, in rows: as many as it has engines and accelerators that choose its
kernels. Its other rows share these choices. Each measured metric counts by itself, so that a row of TTFT and TPOT
counts twice."""

OWNER_SPREAD: Final = 2.0
"""Deviations of owners' offsets in the fit of owners over those in the joint fit; with 1 and 4 errors on P3's or P4's
rows are larger."""

SPECULATION_WEIGHT: Final = 0.02
"""Weight of rows with speculation whose acceptance is unknown: they would set the typical one."""

MAX_ROWS_PER_CELL: Final = 40
"""Fitted rows of one LLM, engine, accelerator, precision and kind of load, spread over their workloads; more rows add
little."""

MAX_OPEN_ROWS_PER_CELL: Final = 4
"""`MAX_ROWS_PER_CELL` of open loops, whose estimate costs many times as much."""

ENGINE_SPREAD: Final = 0.5
"""Factor on the prior deviation of engines from the typical one: owners of one engine differ as much."""

UNMEASURED_SPREAD: Final = 1.5
"""The same of engines whose kernels are in no table."""

OF_STACKS: Final = ("request_overhead_s", "startup_s", "batch_overhead_s")
"""Coefficients that depend on the stack more than on the engine: host, client and network."""

STACK_LOG_SD: Final = 1.2
"""Standard deviation of the logarithm of `OF_STACKS` among owners of one engine in the joint fit: the time at one to
four requests beside the estimated prefill has a variance of 1.4 among stacks of an engine (8 stacks, 6 engines)."""

SHARED_SPREAD: Final = 0.5
"""Standard deviation among owners of a coefficient without offsets of engines, in units of the typical one's, in the
joint fit."""

MAX_ROWS_PER_CALL: Final = 2**14
"""Rows of a call that estimates `_FittedRows.root_rows` for several coefficients, at least one; about 45 MB."""

_STEP: Final = 1e-3


def fit_coefficients(
    descriptors: pd.DataFrame, measured: pd.DataFrame, groups: pd.Series, stacks: pd.Series | None = None
) -> tuple[Coefficients, OwnerOffsets]:
    """Return the maximum-a-posteriori coefficients: robust least squares of log ratios plus log-normal priors.

    The estimate is of typical requests, so rows of tail percentiles are left out. The rows of a named stack have an
    offset of the engine at the stack's owner, so that the coefficients, of a stack that nobody measured, are what
    owners have in common. The offsets are fitted twice.

    The joint fit finds what owners have in common. A group is one piece of evidence about that, so its rows weigh
    `MAX_ROWS_PER_GROUP` at most over all owners. The rows of an API key have at most a tenth of the weight of the
    others' (`limit_uploads`). Open loops are left out unless there is nothing else: near saturation a small error of
    the capacity is a large error of the latency.

    The fit of owners holds what they have in common and fits offsets alone. An owner's rows move no offset but its
    own, so a group weighs `MAX_ROWS_PER_GROUP` at each owner, and deviations are `OWNER_SPREAD` times as large. Open
    loops are included, for an owner may have measured nothing else. Rows of an API key count in full. Its offsets
    enter the tree targets of its own rows alone; the more of the key's deviation they explain, the less is left for
    the trees. Rows are selected by cell over all owners, so an owner with few rows in a large cell can lose them.

    Notes
    -----
    A residual is log(measured / estimated) in units of `ERROR_SCALE`; see `levenberg_marquardt` for the loss. A row's
    weight multiplies its loss and not its residual, so the loss turns linear at the same error in groups of any size.

    Every coefficient has a typical value, most a value of each engine that is shrunk towards it, and all a value of
    each engine at each owner. A row depends on one engine and one owner alone, so the derivatives for all of them
    cost no more evaluations than those of the typical values. Coefficients that act on different rows are shifted
    together.

    References
    ----------
    A. R. Curtis, M. J. D. Powell and J. K. Reid, "On the Estimation of Sparse Jacobian Matrices", IMA Journal of
    Applied Mathematics 13(1), 1974.
    """
    targets = fitted_targets(measured)
    names = pd.Series("", index=descriptors.index) if stacks is None else stacks
    rows, count = select_rows(descriptors, targets, names)
    chosen, names = descriptors.iloc[rows], names.iloc[rows]
    d, owner = descriptor_arrays(chosen), stack_owners(names)
    outcome = {m: targets[m].to_numpy()[rows] for m in ERROR_SCALE if (targets[m].iloc[rows] > 0).any()}
    if not outcome:
        return DEFAULT_COEFFICIENTS, OwnerOffsets()
    is_guess = (d["config.n_draft_token"] > 0) & np.isnan(d["config.acceptance_ratio"])
    is_closed = np.isnan(d["workload.request_rate_per_s"])
    space = _SearchSpace(d["config.engine"].astype(np.intp), owner.to_numpy(dtype=object))

    def solve(blocks: Blocks, part: IndexArray, weight: FloatArray) -> FloatArray:
        weight = np.where(is_guess[part], SPECULATION_WEIGHT * weight, weight)
        return _FittedRows(take_rows(d, part), take_rows(outcome, part), space.unit[part]).solve(blocks, weight)

    groups = separate_uploads(groups.iloc[rows], names)
    joint = np.flatnonzero(is_closed) if is_closed.any() else np.arange(len(rows))
    weight = limit_groups(count[joint], groups.iloc[joint])
    x = solve(space.joint, joint, limit_uploads(weight, names.iloc[joint], config_hashes(chosen.iloc[joint])))
    named = np.flatnonzero(owner != "")
    if not named.size:
        return space.coefficients(x), OwnerOffsets()
    weight = limit_groups(count[named], groups.iloc[named].astype(str) + "\0" + owner.iloc[named])
    around = space.around(x)
    return space.coefficients(x), space.offsets(around.local(solve(around, named, weight)) - around.origin)


def group_columns(acts_on: Mapping[str, npt.NDArray[np.bool_]]) -> list[list[str]]:
    """Return the names in groups of which no two act on one row: first fit, the most rows first.

    Examples
    --------
    >>> group_columns({"a": np.array([True, False]), "b": np.array([True, True]), "c": np.array([False, True])})
    [['b'], ['a', 'c']]
    """
    groups: list[list[str]] = []
    taken: list[npt.NDArray[np.bool_]] = []
    for name in sorted(acts_on, key=lambda name: -int(acts_on[name].sum())):
        fit = next((i for i, rows in enumerate(taken) if not (rows & acts_on[name]).any()), len(groups))
        if fit == len(groups):
            groups.append([])
            taken.append(np.zeros_like(acts_on[name]))
        groups[fit].append(name)
        taken[fit] |= acts_on[name]
    return groups


def limit_groups(weight: FloatArray, groups: pd.Series) -> FloatArray:
    """Return the weights of rows, shape (n_row,), those of a group limited to `MAX_ROWS_PER_GROUP` in all.

    Examples
    --------
    >>> limit_groups(np.ones(13), pd.Series(["a"] * 12 + ["b"])).tolist() == [0.5] * 12 + [1.0]
    True
    """
    size = pd.Series(weight, index=groups.index).groupby(groups).transform("sum").to_numpy()
    return np.asarray(weight * np.minimum(MAX_ROWS_PER_GROUP / size, 1.0), dtype=np.float64)


def select_rows(
    descriptors: pd.DataFrame, targets: pd.DataFrame, stacks: pd.Series | None = None
) -> tuple[IndexArray, FloatArray]:
    """Return rows of central statistics that have a target, and the weight of each.

    They are `MAX_ROWS_PER_CELL` of each cell at most, of open loops `MAX_OPEN_ROWS_PER_CELL`. The weight is the
    number of rows that a row represents; an open loop has 1, so that those of a large cell, uncertain near
    saturation, take little weight from the closed loops of their group. Cells of an API key are its own, see
    `separate_uploads`.
    """
    rows = np.flatnonzero((targets > 0).any(axis=1) & (descriptors["workload.quantile"] == 0.5))
    subset = descriptors.iloc[rows]
    is_open = subset["workload.request_rate_per_s"].notna()
    load = subset["workload.concurrency"].fillna(subset["workload.request_rate_per_s"])
    cells = pd.Series(joint_hash(config_hashes(subset), CELL), index=subset.index)
    if stacks is not None and is_uploaded(stacks).any():
        cells = pd.Series(pd.factorize(separate_uploads(cells, stacks.iloc[rows]))[0], index=subset.index)
    most = np.where(is_open, MAX_OPEN_ROWS_PER_CELL, MAX_ROWS_PER_CELL)
    table = pd.DataFrame(
        {"cell": cells.to_numpy(), "load": load.to_numpy(), "row": rows, "most": most, "is_open": is_open.to_numpy()}
    )
    table = table.sort_values(["cell", "load", "row"])
    size = table.groupby("cell")["row"].transform("size")
    rank = table.groupby("cell").cumcount()
    is_spread = (rank * table["most"] // size) != ((rank - 1) * table["most"] // size)
    is_selected = (size <= table["most"]) | is_spread
    weight = np.where(table["is_open"], 1.0, np.maximum(size / table["most"], 1.0))
    selected = table.assign(weight=weight)[is_selected].sort_values("row")
    return selected["row"].to_numpy(), selected["weight"].to_numpy(dtype=float)


def fitted_targets(measured: pd.DataFrame) -> pd.DataFrame:
    """Return the outcomes that the fit uses, NaN where none: shape (n_row, len(ERROR_SCALE)).

    Throughput is used only in rows without a latency: in a closed loop it follows from TTFT and TPOT, and static
    batches whose total time is known are mostly of engines before their rewrite, whose coefficients differ.
    """
    targets = measured[list(ERROR_SCALE)].astype(float)
    has_latency = measured[["ttft_s", "tpot_s", "itl_s", "e2e_s"]].notna().any(axis=1)
    return targets.assign(
        output_throughput_token_per_s=targets["output_throughput_token_per_s"].mask(has_latency),
        itl_s=targets["itl_s"].where(targets["tpot_s"].isna()),
    )


class _FittedRows:
    """Rows that coefficients are fitted to: their descriptors, measured metrics and unit, see `_SearchSpace`.

    The batch of a row is the root of an equation if the row has a request rate or disaggregated prefill. These rows
    are few, so NumPy's overhead dominates their estimate; one call estimates them for several coefficients. The other
    rows are many; a memo stores the operator times that a coefficient does not change.
    """

    def __init__(self, d: Queries, outcome: Mapping[str, FloatArray], unit: IndexArray) -> None:
        self.d, self.outcome, self.unit, self.memo = d, outcome, unit, Memo()
        is_root = ~np.isnan(d["workload.request_rate_per_s"]) | (d["config.n_prefill_accelerator"] > 0)
        self.root_rows, self.other_rows = np.flatnonzero(is_root), np.flatnonzero(~is_root)
        self.d_of_others = take_rows(d, self.other_rows)
        self.is_known = np.concatenate([values > 0 for values in outcome.values()])
        self.row = np.tile(np.arange(len(unit)), len(outcome))[self.is_known]
        self.acts_on = {name: is_active[self.row] for name, is_active in coefficient_rows(d).items()}
        self.columns = group_columns(self.acts_on)

    def solve(self, blocks: Blocks, weight: FloatArray) -> FloatArray:
        """Return the solver's coordinates, given the blocks of units and the weight of each row, shape (n_row,)."""

        def coefficients(x: FloatArray) -> StackCoefficients:
            return StackCoefficients(DEFAULT_COEFFICIENTS.typical + blocks.local(x), self.unit)

        return levenberg_marquardt(
            lambda x: self.residuals([coefficients(x)])[0],
            lambda x, at: self.slopes(coefficients(x), at),
            blocks,
            weight[self.row],
            self.unit[self.row],
        )

    def slopes(self, c: StackCoefficients, at: FloatArray) -> FloatArray:
        slope = np.zeros((len(at), len(NAMES)))
        shifted = self.residuals([c.shift(names, _STEP) for names in self.columns])
        for names, change in zip(self.columns, (shifted - at) / _STEP, strict=True):
            for name in names:
                slope[self.acts_on[name], NAMES.index(name)] = change[self.acts_on[name]]
        return slope

    def residuals(self, coefficients: Sequence[StackCoefficients]) -> FloatArray:
        estimated = {m: np.empty((len(coefficients), len(self.unit))) for m in self.outcome}
        for rows, estimate_rows in ((self.root_rows, self._estimate_roots), (self.other_rows, self._estimate_others)):
            if rows.size:
                metrics = estimate_rows(coefficients)
                for m, values in estimated.items():
                    values[:, rows] = metrics[m]
        errors = [log_ratio(self.outcome[m], values) / ERROR_SCALE[m] for m, values in estimated.items()]
        return np.asarray(np.nan_to_num(np.concatenate(errors, axis=1)[:, self.is_known]), dtype=np.float64)

    def _estimate_roots(self, coefficients: Sequence[StackCoefficients]) -> dict[str, FloatArray]:
        rows, parts = self.root_rows, []
        n_at_once = max(MAX_ROWS_PER_CALL // len(rows), 1)
        for first in range(0, len(coefficients), n_at_once):
            some = coefficients[first : first + n_at_once]
            d = take_rows(self.d, np.tile(rows, len(some)))
            unit = np.concatenate([c.unit[rows] + i * len(c.log) for i, c in enumerate(some)])
            e = estimate(d, StackCoefficients(np.concatenate([c.log for c in some]), unit))
            parts.append(estimate_metrics(d, e))
        return {m: np.concatenate([part[m] for part in parts]).reshape(-1, len(rows)) for m in self.outcome}

    def _estimate_others(self, coefficients: Sequence[StackCoefficients]) -> dict[str, FloatArray]:
        rows, d = self.other_rows, self.d_of_others
        parts = [
            estimate_metrics(d, estimate(d, StackCoefficients(c.log, c.unit[rows]), self.memo)) for c in coefficients
        ]
        return {m: np.stack([part[m] for part in parts]) for m in self.outcome}


class _SearchSpace:
    """Coordinates of the solver: distances from the priors, in their standard deviations.

    The typical values and the free offsets of each engine are shared. A *unit*, an engine at an owner, has offsets of
    its own; the unit of rows without a named stack has none. Engines without a class of their own share no offset:
    they are different engines, and a question that names none is of their class.
    """

    def __init__(self, engine: IndexArray, owner: npt.NDArray[np.object_]) -> None:
        self.sd = np.array([prior.log_sd for prior in PRIORS.values()])
        engine_sd = np.array([prior.engine_log_sd for prior in PRIORS.values()])
        keys = pd.MultiIndex.from_arrays([owner, engine])
        units = keys.unique().sort_values()
        self.unit = units.get_indexer(keys)
        self.owner, self.engine = (units.get_level_values(i).to_numpy() for i in range(2))
        self.free = np.flatnonzero(engine_sd > 0)
        is_other = self.engine == ENGINES.index("other")
        self.present = np.unique(self.engine[~is_other])
        is_measured = np.isin(np.array(ENGINES)[self.present], MEASURED_ENGINES)
        spread = np.where(is_measured, ENGINE_SPREAD, UNMEASURED_SPREAD)
        self.engine_sd = spread[:, None] * engine_sd[self.free]
        unit_sd = np.where(engine_sd > 0, engine_sd, SHARED_SPREAD * self.sd)
        unit_sd[[NAMES.index(name) for name in OF_STACKS]] = STACK_LOG_SD
        n = len(NAMES)
        shared = np.zeros((len(units), n, n + self.engine_sd.size))
        shared[:, :, :n] = np.diag(self.sd)
        for unit in np.flatnonzero(~is_other):
            of_engine = np.searchsorted(self.present, self.engine[unit])
            columns = n + of_engine * len(self.free) + np.arange(len(self.free))
            shared[unit, self.free, columns] = self.engine_sd[of_engine]
        of_engine_and_owner = np.hypot(unit_sd, UNMEASURED_SPREAD * engine_sd)
        deviation = np.where(is_other[:, None], of_engine_and_owner, unit_sd) * (self.owner != "")[:, None]
        self.joint = Blocks(shared, deviation[:, :, None] * np.eye(n))

    def around(self, x: FloatArray) -> Blocks:
        shared, _ = self.joint.split(x)
        n_unit, n, _ = self.joint.shared.shape
        return Blocks(np.zeros((n_unit, n, 0)), OWNER_SPREAD * self.joint.own, origin=self.joint.shared @ shared)

    def coefficients(self, x: FloatArray) -> Coefficients:
        shared, _ = self.joint.split(x)
        n = len(NAMES)
        offset = np.zeros((len(ENGINES), n))
        of_engines = shared[n:].reshape(self.engine_sd.shape)
        offset[np.ix_(self.present, self.free)] = of_engines * self.engine_sd
        return Coefficients(DEFAULT_COEFFICIENTS.typical + shared[:n] * self.sd, offset)

    def offsets(self, of_units: FloatArray) -> OwnerOffsets:
        named = self.owner != ""
        return OwnerOffsets(tuple(self.owner[named]), self.engine[named], of_units[named])
