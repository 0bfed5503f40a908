"""Releases of engines: the date of each, and what changed in how its scheduler and the accelerator take turns."""

import csv
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

import numpy as np
import pandas as pd

from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.precisions import Names
from roofcast.features.queries import FloatArray

_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")
_MIXING: Final = ("llama.cpp", "turbomind", "lmdeploy", "deepspeed-mii")
"""Engines without a table whose passes hold prompts and decoding requests alike.

References
----------
llama.cpp, ``tools/server/server-context.cpp``, ``update_slots``: one batch holds both; C. Holmes et al.,
"DeepSpeed-FastGen", 2024, section 3 (dynamic SplitFuse); LMDeploy, ``turbomind/engine/engine.cc``.
"""

SLOW_UNTIL_YEAR: Final = 2025.0
"""Date until which the kernels of an engine on AMD's accelerators became faster from year to year: release notes of
ROCm 6.2 to 6.4 and of vLLM 0.6 to 0.8 (captured graphs, paged and flash attention, AITER)."""


_COLUMNS: Final = tuple(f"config.{name}" for name in ("date", "age_year", "host_ratio", "is_overlapped", "is_mixed"))


@dataclass(frozen=True, slots=True)
class Release:
    """One release of an engine.

    - `year`: Date of the upload to PyPI.
    - `host_ratio`: Time of the host that the accelerator waits for in each step, relative to vLLM 0.8; 0 if
      scheduling overlaps.
    - `is_mixed`: Whether a step takes prompts along (1), or prompts and decoding alternate (0).
    """

    version: tuple[int, ...]
    year: float
    host_ratio: float
    is_mixed: float

    @property
    def is_overlapped(self) -> float:
        """Whether the next step is scheduled while one is under way; engines without a table schedule in between."""
        return float(self.host_ratio == 0 and self.version != ())


@cache
def engine_releases() -> dict[str, tuple[Release, ...]]:
    """Return the releases of each engine with a table, oldest first: ``engine_releases.csv`` beside this module."""
    text = resources.files(__package__ or "").joinpath("engine_releases.csv").read_text(encoding="utf-8")
    releases: dict[str, list[Release]] = {}
    for row in csv.DictReader(text.splitlines()):
        version = tuple(map(int, row["version"].split(".")))
        release = Release(version, decimal_year(row["date"]), float(row["host_ratio"]), float(row["is_mixed"]))
        releases.setdefault(row["engine"], []).append(release)
    return {engine: tuple(of) for engine, of in releases.items()}


def find_release(engine: str, version: str, date: str) -> Release:
    """Return the release that a question is about: by version, else the newest at the date, else the newest.

    Examples
    --------
    >>> find_release("vllm", "0.10.2", "").host_ratio, find_release("vllm", "", "2026-03").host_ratio
    (1.0, 0.0)
    >>> find_release("vllm", "", "").version == engine_releases()["vllm"][-1].version
    True
    """
    known = engine_releases().get(engine, ())
    number = _VERSION.match(version)
    year = decimal_year(date) if date else newest_year()
    if not known:
        return Release((), year, 0.0, float(engine in _MIXING))
    if number:
        parts = tuple(int(part) for part in number.groups() if part is not None)
        return known[max(bisect_right([release.version for release in known], parts) - 1, 0)]
    return known[max(bisect_right([release.year for release in known], year) - 1, 0)] if date else known[-1]


@cache
def newest_year() -> float:
    """Return the date of the newest release of all engines: that of a question without version and date."""
    return max(releases[-1].year for releases in engine_releases().values())


def describe_releases(engine: FloatArray, version: Names, date: Names) -> dict[str, FloatArray]:
    """Return the columns that depend on an engine's release: those of `Release`, and the date where it is blank."""
    keys = pd.MultiIndex.from_arrays([engine.astype(np.intp), version, date])
    codes, distinct = keys.factorize()
    rows = [_describe_release(*key) for key in distinct]
    columns = np.reshape(rows, (-1, len(_COLUMNS))).T[:, codes]
    return dict(zip(_COLUMNS, columns, strict=True))


def _describe_release(code: int, version: str, date: str) -> tuple[float, ...]:
    release = find_release(ENGINES[code], version, date)
    year = decimal_year(date) if date else release.year
    return year, max(SLOW_UNTIL_YEAR - year, 0.0), release.host_ratio, release.is_overlapped, release.is_mixed


def decimal_year(date: str) -> float:
    """Return a date, `YYYY` to `YYYY-MM-DD`, as a year; the middle of a year or month where no more is known.

    Examples
    --------
    >>> round(decimal_year("2025"), 2), round(decimal_year("2025-07"), 2), decimal_year("2025-01-01")
    (2025.5, 2025.54, 2025.0)
    """
    year, month, day = (*map(float, date.split("-")), np.nan, np.nan)[:3]
    in_month = 0.5 if np.isnan(day) else (day - 1) / 31
    return year + (0.5 if np.isnan(month) else (month - 1 + in_month) / 12)
