"""Result of building a campaign: validated rows, and published rows that were rejected, each with its rule.

Rows that users import and that are far from what others measured are in quarantine instead, see
`roofcast.training.lifecycle.quarantine`.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.data.campaigns import CAMPAIGNS
from roofcast.data.errors import UnknownNameError
from roofcast.data.job_campaigns import TRAINING_CAMPAIGNS, TRAINING_JUDGES

REJECTED_COLUMNS: Final = ("reference", "reason", "detail")
"""Identifier of the row in its source, short name of the rule, and detail."""


def no_rejected_rows() -> pd.DataFrame:
    """Return an empty table of rejected rows."""
    return pd.DataFrame({name: pd.Series(dtype=str) for name in REJECTED_COLUMNS})


@dataclass(frozen=True)
class BuildResult:
    """Campaign built from its published files.

    - `rows`: Validated measurements.
    - `n_read`: Number of published rows; one published row may give several measurements, one per statistic.
    - `rejected`: Published rows that became no measurement, with columns `REJECTED_COLUMNS`. Every published row is
      either in `rows` or here.
    """

    rows: pd.DataFrame
    n_read: int
    rejected: pd.DataFrame = field(default_factory=no_rejected_rows)


def rejected_file(package: str, name: str) -> Path:
    """Return the file of a campaign's rejected rows, which is there if it has any."""
    return Path(__file__).parent / package / "rejected" / f"{name}.csv"


def load_rejected_rows(name: str) -> pd.DataFrame:
    """Return the rejected rows of an inference or training campaign, with columns `REJECTED_COLUMNS`.

    Raises `UnknownNameError` if no campaign has this name.

    Examples
    --------
    >>> sorted(set(load_rejected_rows("torchtune")["reason"]))
    ['duplicate', 'not_training']
    """
    names = (*CAMPAIGNS, *TRAINING_CAMPAIGNS, *TRAINING_JUDGES)
    if name not in names:
        raise UnknownNameError("campaign", name, names)
    file = rejected_file("campaigns" if name in CAMPAIGNS else "job_campaigns", name)
    return pd.read_csv(file, dtype=str, keep_default_na=False) if file.is_file() else no_rejected_rows()
