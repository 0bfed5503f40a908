"""Robust fit of log parameters: typical values plus offsets by level, shrunk by priors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from research.kernels.tables import KernelRows
from roofcast.features.engine.kernels.kernel_coefficients import FACTORS, LEVELS, KernelCoefficients

FloatArray = npt.NDArray[np.float64]

TYPICAL_SD: Final = 1.5
LEVEL_SD: Final = {
    "architecture": 0.4,
    "accelerator": 0.2,
    "precision": 0.5,
    "engine": 0.3,
    "architecture+precision": 0.3,
    "engine+precision": 0.3,
}
"""Prior standard deviation of the log offsets, set by judgement."""

RESIDUAL_SD: Final = 0.15
ROBUST_WIDTH: Final = 1.5
CELL_ROW: Final = 30.0
"""Effective sample size of a cell (accelerator, engine, precision), as its rows share the form's errors."""

_STEP = 1e-4
_TOLERANCE = 3e-4


@dataclass(frozen=True, slots=True)
class Form:
    """A closed form to fit.

    - `names`: Parameters, in the order of their dataclass.
    - `seconds`: Maps arguments by name and parameters of shape (n_parameter, n_row) to seconds of shape (n_row,).
    - `start`: shape (n_parameter,). Prior medians.
    - `spread`: shape (n_parameter,). Factor on the prior standard deviations: small for shares with physical bounds.
    """

    names: tuple[str, ...]
    seconds: Callable[[Mapping[str, FloatArray], FloatArray], FloatArray]
    start: FloatArray
    spread: FloatArray


def log_error(form: Form, rows: KernelRows, logs: FloatArray) -> FloatArray:
    """Return log(estimate / measurement) for log parameters of shape (n_row, n_parameter)."""
    return np.log(form.seconds(rows.arguments, np.exp(logs).T)) - np.log(rows.latency_s)


def gather_logs(coefficients: KernelCoefficients, factors: pd.DataFrame) -> FloatArray:
    """Look up the log parameters of each row: shape (n_row, n_parameter)."""
    inverse, combinations = _codes(factors)
    records = combinations.to_dict("records")
    values = [coefficients.log_values({str(k): str(v) for k, v in row.items()}) for row in records]
    return np.array(values)[inverse]


def _codes(factors: pd.DataFrame) -> tuple[npt.NDArray[np.intp], pd.DataFrame]:
    groups: npt.NDArray[np.intp] = np.asarray(factors.groupby(list(FACTORS), sort=False).ngroup(), dtype=np.intp)
    return groups, factors.drop_duplicates(list(FACTORS))


def fit_offsets(form: Form, rows: KernelRows, n_iteration: int = 25) -> KernelCoefficients:
    """Fit the coefficients to the rows.

    Levenberg-Marquardt on pseudo-Huber losses of log residuals, with log-normal priors on every offset. A row's
    parameters are the sum of its levels' offsets, so derivatives by offset equal those by parameter.

    References
    ----------
    K. Madsen, H. B. Nielsen and O. Tingleff, "Methods for Non-Linear Least Squares Problems", DTU, 2004.
    """
    return _Fit(form, rows).run(n_iteration)


class _Fit:
    def __init__(self, form: Form, rows: KernelRows) -> None:
        self.combination, combinations = _codes(rows.factors)
        order = np.argsort(self.combination, kind="stable")
        self.form, self.rows = form, rows.take(order)
        self.combination = self.combination[order]
        self.edges = np.flatnonzero(np.diff(self.combination, prepend=-1))
        keys: list[tuple[str, str]] = []
        columns = [np.zeros(len(combinations), dtype=np.intp)]
        sd = [TYPICAL_SD]
        for level in LEVELS:
            codes, names = pd.factorize(combinations[list(level)].agg("+".join, axis=1))
            columns.append(codes + len(sd))
            name = "+".join(level)
            keys += [(name, str(key)) for key in names]
            sd += [LEVEL_SD[name]] * len(names)
        self.keys, self.columns = keys, np.array(columns).T
        self.sd = np.array(sd)[:, None] * form.spread
        self.start = np.log(form.start)
        self.weight = CELL_ROW / np.bincount(self.combination)[self.combination]

    def logs(self, offsets: FloatArray) -> FloatArray:
        shared: FloatArray = self.start + offsets[self.columns].sum(axis=1)
        return shared[self.combination]

    def cost(self, offsets: FloatArray) -> float:
        scaled = log_error(self.form, self.rows, self.logs(offsets)) / RESIDUAL_SD
        robust = 2 * ROBUST_WIDTH**2 * (np.sqrt(1 + (scaled / ROBUST_WIDTH) ** 2) - 1)
        return float(self.weight @ robust + ((offsets / self.sd) ** 2).sum())

    def slopes(self, logs: FloatArray, residual: FloatArray) -> FloatArray:
        slope = np.empty_like(logs)
        for i in range(logs.shape[1]):
            moved = logs.copy()
            moved[:, i] += _STEP
            slope[:, i] = (log_error(self.form, self.rows, moved) - residual) / _STEP
        return slope

    def normal_equations(self, offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
        logs = self.logs(offsets)
        residual = log_error(self.form, self.rows, logs)
        scaled, slope = residual / RESIDUAL_SD, self.slopes(logs, residual) / RESIDUAL_SD
        weighted = slope * (self.weight / np.sqrt(1 + (scaled / ROBUST_WIDTH) ** 2))[:, None]
        outer = np.add.reduceat(weighted[:, :, None] * slope[:, None, :], self.edges)
        pull = np.add.reduceat(weighted * scaled[:, None], self.edges)
        n, n_parameter = offsets.shape
        curvature, gradient = np.zeros((n, n, n_parameter, n_parameter)), offsets / self.sd**2
        for columns, block, push in zip(self.columns, outer, pull, strict=True):
            curvature[np.ix_(columns, columns)] += block
            gradient[columns] += push
        flat = curvature.transpose(0, 2, 1, 3).reshape(n * n_parameter, -1)
        flat[np.diag_indices_from(flat)] += (self.sd**-2).ravel()
        return flat, gradient.ravel()

    def run(self, n_iteration: int) -> KernelCoefficients:
        offsets = np.zeros(self.sd.shape)
        cost, damping = self.cost(offsets), 1e-2
        for _ in range(n_iteration):
            curvature, gradient = self.normal_equations(offsets)
            before = cost
            while damping < 1e6:
                damped = curvature + damping * np.diag(np.diag(curvature))
                tried = offsets - np.linalg.solve(damped, gradient).reshape(offsets.shape)
                if (new := self.cost(tried)) < cost:
                    offsets, cost, damping = tried, new, damping / 5
                    break
                damping *= 5
            if before - cost < _TOLERANCE * cost:
                break
        return self.coefficients(offsets)

    def coefficients(self, offsets: FloatArray) -> KernelCoefficients:
        by_level: dict[str, dict[str, Any]] = {"+".join(level): {} for level in LEVELS}
        for (level, key), offset in zip(self.keys, offsets[1:], strict=True):
            by_level[level][key] = offset
        return KernelCoefficients(self.start + offsets[0], by_level)
