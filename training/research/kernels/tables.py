"""Measured kernel latencies: parquet tables by system, operator, engine and version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.errors import InputError

FloatArray = npt.NDArray[np.float64]

SYSTEMS: Final = {
    "a100_sxm": "nvidia-a100-sxm-80gb",
    "b200_sxm": "nvidia-b200-sxm-180gb",
    "b300_sxm": "nvidia-b300-sxm-270gb",
    "b60": "intel-arc-pro-b60-24gb",
    "gb200": "nvidia-gb200",
    "gb300": "nvidia-gb300",
    "h100_sxm": "nvidia-h100-sxm-80gb",
    "h200_sxm": "nvidia-h200-sxm-141gb",
    "l40s": "nvidia-l40s-48gb",
    "rtx_pro_6000_server": "nvidia-rtx-pro-6000-blackwell-server",
}
"""Catalogue accelerator by system name in the tables."""

ENGINES: Final = {"trtllm": "trtllm", "sglang": "sglang", "vllm": "vllm", "nccl": "nccl", "oneccl": "nccl"}

_MIN_ROW_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class KernelRows:
    """Measured latencies of one kind of kernel.

    - `arguments`: Arguments of the kind's function except the efficiency, by name: each of shape (n_row,).
    - `factors`: shape (n_row, 4). Columns `roofcast.features.engine.kernels.kernel_coefficients.FACTORS`.
    - `latency_s`: shape (n_row,)
    """

    arguments: Mapping[str, FloatArray]
    factors: pd.DataFrame
    latency_s: FloatArray

    def take(self, rows: npt.NDArray[np.intp]) -> KernelRows:
        """Return a subset of the rows."""
        arguments = {name: values[rows] for name, values in self.arguments.items()}
        return KernelRows(arguments, self.factors.iloc[rows].reset_index(drop=True), self.latency_s[rows])


def read_table(folder: Path, name: str) -> tuple[pd.DataFrame, dict[str, int]]:
    """Read a table for all systems and engines; return it with the number of rejected rows by rule.

    One version per system and engine is used: the newest with at least a third of the rows of the largest version.
    Columns `accelerator` and `engine` are added.

    Raises `InputError` if the folder holds no such table.
    """
    parts = []
    n_rejected = {"unknown_system": 0, "older_version": 0}
    for path in sorted(folder.rglob(f"{name}.parquet")):
        system, _, engine, version, _ = path.parts[-5:]
        table = pd.read_parquet(path)
        if system not in SYSTEMS or engine not in ENGINES:
            n_rejected["unknown_system"] += len(table)
            continue
        parts.append((SYSTEMS[system], ENGINES[engine], version_key(version), table))
    if not parts:
        raise InputError("tables", f"no {name}.parquet of a known system below {folder}; unpack the wheel there")
    newest_tables = []
    for accelerator, engine in sorted({(part[0], part[1]) for part in parts}):
        versions = sorted((part for part in parts if part[:2] == (accelerator, engine)), key=lambda part: part[2])
        min_row = _MIN_ROW_SHARE * max(len(part[3]) for part in versions)
        newest = next(part[3] for part in reversed(versions) if len(part[3]) >= min_row)
        n_rejected["older_version"] += sum(len(part[3]) for part in versions) - len(newest)
        newest_tables.append(newest.assign(accelerator=accelerator, engine=engine))
    return pd.concat(newest_tables, ignore_index=True), n_rejected


def version_key(version: str) -> tuple[tuple[int, str], ...]:
    """Return the sort key of a version: numbers are numeric, a release candidate precedes its release.

    Examples
    --------
    >>> version_key("0.5.9") < version_key("0.5.14")
    True
    """
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|[a-z]+", version))


def fastest(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the fastest row of each setting, as an engine with several kernels selects the fastest."""
    return table.sort_values("latency", kind="stable").drop_duplicates(keys)


def sample(table: pd.DataFrame, by: list[str], n: int, seed: int = 0) -> pd.DataFrame:
    """Return a random sample of at most `n` rows per group."""
    drawn = table.sample(frac=1.0, random_state=seed)
    return drawn[drawn.groupby(by, sort=False).cumcount() < n].sort_index().reset_index(drop=True)
