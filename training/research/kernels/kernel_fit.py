"""Fit and held-out errors of one kind of kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from research.kernels.kind import Kind
from research.kernels.offsets import fit_offsets, gather_logs, log_error
from research.kernels.tables import KernelRows
from roofcast.features.engine.kernels.kernel_coefficients import KernelCoefficients

FloatArray = npt.NDArray[np.float64]

SOURCE: Final = {
    "name": "aiconfigurator-core, measured kernel latencies",
    "where": "PyPI",
    "version": "0.12.0",
    "licence": "Apache-2.0",
    "by": "python -m research.kernels.fit",
}


@dataclass(frozen=True, slots=True)
class KernelFit:
    """Coefficients of one kind, errors of the sample, and number of rejected rows by rule.

    `errors` has the factors and log(estimate / measurement) in three columns: `fitted` (all accelerators fitted),
    `held_out` (the row's accelerator held out) and `roofline` (data-sheet peaks).
    """

    kind: Kind
    coefficients: KernelCoefficients
    errors: pd.DataFrame
    n_rejected: Mapping[str, int]


def fit_kind(kind: Kind, rows: KernelRows, n_rejected: Mapping[str, int]) -> KernelFit:
    """Fit a kind on all rows, and evaluate it on each accelerator with that accelerator held out."""
    form = kind.form()
    coefficients = fit_offsets(form, rows)
    errors = rows.factors.assign(fitted=log_error(form, rows, gather_logs(coefficients, rows.factors)))
    ideal = np.log(np.maximum(kind.ideal, np.finfo(float).tiny))
    errors["roofline"] = log_error(form, rows, np.tile(ideal, (len(errors), 1)))
    errors["held_out"] = np.nan
    for accelerator in rows.factors["accelerator"].unique():
        is_own = (rows.factors["accelerator"] == accelerator).to_numpy()
        others = fit_offsets(form, rows.take(np.flatnonzero(~is_own)))
        own = rows.take(np.flatnonzero(is_own))
        errors.loc[is_own, "held_out"] = log_error(form, own, gather_logs(others, own.factors))
    return KernelFit(kind, coefficients, errors, n_rejected)


def document(fitted: Sequence[KernelFit], as_of: str) -> dict[str, Any]:
    """Return the shipped JSON document of the coefficients; see `coefficients.parse_coefficients`."""
    return {"source": {**SOURCE, "fitted": as_of}, "kernels": {one.kind.name: _entry(one) for one in fitted}}


def _entry(fitted: KernelFit) -> dict[str, Any]:
    names = fitted.kind.form().names

    def row(values: FloatArray) -> dict[str, float]:
        return {name: round(float(value), 3) for name, value in zip(names, values, strict=True)}

    typical = np.exp(fitted.coefficients.typical)
    return {
        "typical": {name: float(f"{value:.4g}") for name, value in zip(names, typical, strict=True)},
        "log_offset": {
            level: {key: row(values) for key, values in sorted(keys.items())}
            for level, keys in fitted.coefficients.offset.items()
        },
    }
