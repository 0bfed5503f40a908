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
"""Accelerators of the catalogue by the tables' names of systems."""

ENGINES: Final = {"trtllm": "trtllm", "sglang": "sglang", "vllm": "vllm", "nccl": "nccl", "oneccl": "nccl"}

_ENOUGH = 1 / 3


@dataclass(frozen=True, slots=True)
class KernelRows:
    """Measured latencies of one kind of kernel.

    Parameters
    ----------
    arguments
        Arguments of the kind's function but the efficiency, by name: each of shape (n_row,).
    factors : shape (n_row, 4)
        Columns `roofcast.features.engine.kernels.coefficients.FACTORS`.
    latency_s : shape (n_row,)
    """

    arguments: Mapping[str, FloatArray]
    factors: pd.DataFrame
    latency_s: FloatArray

    def take(self, rows: npt.NDArray[np.intp]) -> KernelRows:
        """Return these rows."""
        arguments = {name: values[rows] for name, values in self.arguments.items()}
        return KernelRows(arguments, self.factors.iloc[rows].reset_index(drop=True), self.latency_s[rows])


def read_table(folder: Path, name: str) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return a table of every system and engine, and how many rows were set aside by rule.

    Of the versions of an engine on a system one is kept: the newest with a third of the fullest's rows at least.
    Columns `accelerator` and `engine` are added.

    Raises
    ------
    InputError
        If the folder holds no such table.
    """
    parts = []
    n_aside = {"unknown_system": 0, "older_version": 0}
    for path in sorted(folder.rglob(f"{name}.parquet")):
        system, _, engine, version, _ = path.parts[-5:]
        table = pd.read_parquet(path)
        if system not in SYSTEMS or engine not in ENGINES:
            n_aside["unknown_system"] += len(table)
            continue
        parts.append((SYSTEMS[system], ENGINES[engine], version_key(version), table))
    if not parts:
        raise InputError("tables", f"no {name}.parquet of a known system below {folder}; unpack the wheel there")
    kept = []
    for accelerator, engine in sorted({(part[0], part[1]) for part in parts}):
        own = sorted((part for part in parts if part[:2] == (accelerator, engine)), key=lambda part: part[2])
        enough = _ENOUGH * max(len(part[3]) for part in own)
        newest = next(part[3] for part in reversed(own) if len(part[3]) >= enough)
        n_aside["older_version"] += sum(len(part[3]) for part in own) - len(newest)
        kept.append(newest.assign(accelerator=accelerator, engine=engine))
    return pd.concat(kept, ignore_index=True), n_aside


def version_key(version: str) -> tuple[tuple[int, str], ...]:
    """Return what orders versions: numbers as numbers, a release candidate before what follows it.

    Examples
    --------
    >>> version_key("0.5.9") < version_key("0.5.14")
    True
    """
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|[a-z]+", version))


def fastest(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the fastest row of each setting: where an engine has several kernels it takes that."""
    return table.sort_values("latency", kind="stable").drop_duplicates(keys)


def sample(table: pd.DataFrame, by: list[str], n: int, seed: int = 0) -> pd.DataFrame:
    """Return at most `n` rows of each group, drawn at random."""
    drawn = table.sample(frac=1.0, random_state=seed)
    return drawn[drawn.groupby(by, sort=False).cumcount() < n].sort_index().reset_index(drop=True)
