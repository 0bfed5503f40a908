"""Specification of a kind of kernel: table, rejection rules, arguments and priors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from research.kernels.offsets import Form
from research.kernels.tables import KernelRows, fastest, read_table, sample
from roofcast.data.catalog import load_catalog
from roofcast.data.units import S_PER_MS
from roofcast.features.engine.kernels.kernel_coefficients import FACTORS, KINDS, family_of

FloatArray = npt.NDArray[np.float64]

ROW_PER_CELL: Final = 300
"""Rows sampled per accelerator, engine and precision."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of kernel.

    - `name`: Key of `roofcast.features.engine.kernels.kernel_coefficients.KINDS`.
    - `table`: Name of the parquet tables.
    - `reject`: Predicates of the rows that are not fitted, by rule.
    - `describe`: Converts a table with `accelerator` and `engine` to one with the arguments of `seconds` and
      `precision`.
    - `seconds`: Closed form; takes the arguments by name, and ``efficiency``.
    - `start`: Prior medians, in the order of the fields of the efficiency class.
    - `ideal`: Parameters that reduce the form to a roofline at data-sheet peaks.
    - `spread`: Factors on the prior standard deviations.
    """

    name: str
    table: str
    reject: Mapping[str, Callable[[pd.DataFrame], pd.Series[bool]]]
    describe: Callable[[pd.DataFrame], pd.DataFrame]
    seconds: Callable[..., FloatArray]
    start: tuple[float, ...]
    ideal: tuple[float, ...]
    spread: tuple[float, ...]

    def form(self) -> Form:
        """Return the closed form to fit."""
        cls = KINDS[self.name]

        def seconds(arguments: Mapping[str, FloatArray], parameters: FloatArray) -> FloatArray:
            return self.seconds(**arguments, efficiency=cls(*parameters))

        names = tuple(field.name for field in fields(cls))
        return Form(names, seconds, np.array(self.start), np.array(self.spread))

    def rows(self, folder: Path, n_row: int = ROW_PER_CELL) -> tuple[KernelRows, dict[str, int]]:
        """Read a sample of the rows below `folder`; return it with the number of rejected rows by rule."""
        table, n_rejected = read_table(folder, self.table)
        for rule, find in self.reject.items():
            is_rejected = find(table).to_numpy(dtype=bool)
            n_rejected[rule] = int(is_rejected.sum())
            table = table[~is_rejected]
        is_broken = ~(table["latency"].to_numpy(dtype=float) > 0)
        n_rejected["no_latency"] = int(is_broken.sum())
        table = table[~is_broken].reset_index(drop=True)
        described = self.describe(table)
        arguments = [str(name) for name in described if name != "precision"]
        described = described.assign(
            latency=table["latency"], accelerator=table["accelerator"], engine=table["engine"],
            architecture=architectures(table["accelerator"]),
        )  # fmt: skip
        best = fastest(described, [*arguments, *FACTORS])
        n_rejected["slower_kernel"] = len(described) - len(best)
        drawn = sample(best, ["accelerator", "engine", "precision"], n_row)
        values: dict[str, Any] = {name: drawn[name].to_numpy(dtype=float) for name in arguments}
        latency_s = drawn["latency"].to_numpy(dtype=float) * S_PER_MS
        return KernelRows(values, drawn[list(FACTORS)], latency_s), n_rejected


def architectures(accelerators: pd.Series[str]) -> pd.Series[str]:
    """Return the family of each accelerator."""
    catalog = load_catalog()
    families = {name: family_of(name, catalog.accelerator(name).architecture) for name in set(accelerators)}
    return accelerators.map(families)


def is_other_kernel(keys: list[str]) -> Callable[[pd.DataFrame], pd.Series[bool]]:
    """Return the rule that rejects fallback kernels: all but the most frequent of an accelerator and engine."""

    def find(table: pd.DataFrame) -> pd.Series[bool]:
        by = ["accelerator", "engine", *keys]
        n_own = table.groupby([*by, "kernel_source"], dropna=False)["latency"].transform("size")
        n_most = n_own.groupby([table[name] for name in by], dropna=False).transform("max")
        return n_own < n_most

    return find
