"""What new measurements have that a predictor has not learnt: newer engine versions, first rows of a name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import pandas as pd

_RELEASE: Final = re.compile(r"v?(\d+(?:\.\d+)+)|b(\d+)$")
"""A release such as ``v0.8.5.post1`` or a numbered build such as llama.cpp's ``b6077``."""

Release = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LearntNames:
    """Names in the measurements that a predictor learnt from, and the newest known version of each engine."""

    models: frozenset[str]
    accelerators: frozenset[str]
    engines: frozenset[str]
    newest: Mapping[str, str]

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Self:
        """Return the names in some measurements."""
        newest: dict[str, str] = {}
        for engine, version in rows[["engine", "engine_version"]].drop_duplicates().itertuples(index=False):
            if parse_release(version) > parse_release(newest.get(engine, "")):
                newest[engine] = version
        models, accelerators, engines = (frozenset(rows[name]) for name in ("model", "accelerator", "engine"))
        return cls(models, accelerators, engines, newest)


def parse_release(version: str) -> Release:
    """Return the numbers of a release, empty if a version has none; an addition such as ``.post1`` does not count.

    Examples
    --------
    >>> parse_release("v0.8.5.post1"), parse_release("b6077"), parse_release("nightly")
    ((0, 8, 5), (6077,), ())
    """
    match = _RELEASE.match(version.strip())
    return tuple(int(number) for number in (match[1] or match[2]).split(".")) if match else ()


def novelty_warnings(rows: pd.DataFrame, learnt: LearntNames) -> list[str]:
    """Return a warning of each engine version newer than all learnt ones, and of each name without learnt rows."""
    warnings = []
    for column, known in (("model", learnt.models), ("accelerator", learnt.accelerators), ("engine", learnt.engines)):
        unknown = rows.loc[~rows[column].isin(known) & (rows[column] != ""), column].value_counts().sort_index()
        for name, n in unknown.items():
            warnings.append(f"{column}: the first {n} rows of {name}, which the predictor knows from no measurement")
    counts = rows.groupby(["engine", "engine_version"]).size().reset_index(name="n_row")
    for engine, version, n in counts.itertuples(index=False):
        newest = learnt.newest.get(engine)
        if newest and parse_release(version) > parse_release(newest):
            problem = f"{n} rows of {engine} {version}, newer than any that the predictor learnt from"
            warnings.append(f"engine_version: {problem}; its newest is {newest}")
    return warnings
