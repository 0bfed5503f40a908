"""Published rows that the builders of campaigns rejected, each with the rule that rejected it.

Rows that users import and that are far from what others measured are in quarantine instead, see
`roofcast.training.lifecycle.quarantine`.
"""

from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.data.campaigns import CAMPAIGNS
from roofcast.data.errors import UnknownNameError
from roofcast.data.job_campaigns import TRAINING_CAMPAIGNS, TRAINING_JUDGES

REJECTED_COLUMNS: Final = ("reference", "reason", "detail")
"""Identifier of the row in its source, short name of the rule, and detail."""

REJECTED: Final = Path(__file__).parent / "campaigns" / "rejected"
TRAINING_REJECTED: Final = Path(__file__).parent / "job_campaigns" / "rejected"
"""Folders with one CSV file for each campaign that has rejected rows."""


def no_rejected_rows() -> pd.DataFrame:
    """Return an empty table of rejected rows."""
    return pd.DataFrame({name: pd.Series(dtype=str) for name in REJECTED_COLUMNS})


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
    file = (REJECTED if name in CAMPAIGNS else TRAINING_REJECTED) / f"{name}.csv"
    return pd.read_csv(file, dtype=str, keep_default_na=False) if file.is_file() else no_rejected_rows()
