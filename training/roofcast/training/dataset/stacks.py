"""Stacks: who built, configured and measured an engine."""

from __future__ import annotations

import pandas as pd


def name_stacks(measurements: pd.DataFrame) -> pd.Series:
    """Return the stack of each measurement: its campaign where none is stated."""
    return measurements["stack"].mask(measurements["stack"] == "", measurements["campaign"]).rename("stack")


def stack_owners(stacks: pd.Series) -> pd.Series:
    """Return the owner of each stack: its name up to the first slash.

    Examples
    --------
    >>> stack_owners(pd.Series(["mlperf/dell", "dstack"])).tolist()
    ['mlperf', 'dstack']
    """
    return stacks.str.partition("/")[0]
