"""Stacks: who built, configured and measured an engine."""

from typing import Final

import pandas as pd

RECENT_YEAR: Final = 2.0
MIN_REQUEST: Final = 10
MIN_WAVE: Final = 2.0
MIN_ROW: Final = 100
"""Of `competent_rows`."""

UPLOADED: Final = "key:"
"""Start of the owner of stacks whose rows an API key of the service stored; the key's name follows."""


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
    return stacks.str.split("/", n=1).str[0]


def competent_rows(X: pd.DataFrame, stacks: pd.Series) -> pd.Series:
    """Return whether each row measures a competent operator's steady service: shape (n_row,).

    Its software is of the last `RECENT_YEAR` years before the newest published row. Requests arrive at a rate, or
    some are always in flight; their number is stated, at least `MIN_REQUEST`, and fills the slots at least `MIN_WAVE`
    times. Its stack's owner has `MIN_ROW` such rows.
    """
    is_steady = (X["workload.is_static"] == 0) & (X["workload.n_request"] >= MIN_REQUEST)
    is_steady &= X["workload.request_rate_per_s"].notna() | (X["workload.n_wave"] >= MIN_WAVE)
    rows = is_steady & (X["config.date"] >= recent_since(X, stacks))
    is_large: pd.Series = rows.groupby(stack_owners(stacks)).transform("sum") >= MIN_ROW
    return pd.Series(rows & is_large, X.index)


def recent_since(X: pd.DataFrame, stacks: pd.Series) -> float:
    """Return the year from which software is recent: `RECENT_YEAR` before the newest published row."""
    return float(X.loc[~is_uploaded(stacks), "config.date"].max() - RECENT_YEAR)


def is_uploaded(stacks: pd.Series) -> pd.Series:
    """Return whether each stack belongs to an API key.

    Examples
    --------
    >>> is_uploaded(pd.Series(["key:ci/nightly", "dstack", ""])).tolist()
    [True, False, False]
    """
    return stacks.str.startswith(UPLOADED)


def separate_uploads(groups: pd.Series, stacks: pd.Series) -> pd.Series:
    """Return the groups with the rows of each API key apart, so that uploads take no weight from the rows of others.

    Examples
    --------
    >>> separate_uploads(pd.Series(["llama", "llama"]), pd.Series(["key:ci/nightly", "dstack"])).tolist()
    ['key:ci llama', 'llama']
    """
    names = groups.astype(object)
    return names.mask(is_uploaded(stacks), stack_owners(stacks) + " " + names.astype(str))


def name_by_uploader(measurements: pd.DataFrame, uploaders: pd.Series) -> pd.DataFrame:
    """Return measurements whose campaigns and stacks start with the API key that stored them, if one did."""
    is_upload, owner = uploaders != "", UPLOADED + uploaders + "/"
    return measurements.assign(
        campaign=measurements["campaign"].mask(is_upload, owner + measurements["campaign"]),
        stack=measurements["stack"].mask(is_upload, owner + name_stacks(measurements)),
    )
