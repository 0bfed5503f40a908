"""Quarantine of the campaigns: rejected published rows, each with the rule that rejected it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.data.campaigns import CAMPAIGNS
from roofcast.data.errors import UnknownNameError
from roofcast.data.training_campaigns import TRAINING_CAMPAIGNS, TRAINING_JUDGES

QUARANTINE_COLUMNS: Final = ("reference", "reason", "detail")
"""Identifier of the row in its source, short name of the rule, and detail."""

QUARANTINE: Final = Path(__file__).parent / "campaigns" / "quarantine"
TRAINING_QUARANTINE: Final = Path(__file__).parent / "training_campaigns" / "quarantine"
"""Folders with one CSV file for each campaign that has rejected rows."""


def empty_quarantine() -> pd.DataFrame:
    """Return an empty quarantine table."""
    return pd.DataFrame({name: pd.Series(dtype=str) for name in QUARANTINE_COLUMNS})


def load_quarantine(name: str) -> pd.DataFrame:
    """Return the quarantine of an inference or training campaign, with columns `QUARANTINE_COLUMNS`.

    Raises
    ------
    UnknownNameError
        If no campaign has this name.

    Examples
    --------
    >>> sorted(set(load_quarantine("torchtune")["reason"]))
    ['duplicate', 'not_training']
    """
    names = (*CAMPAIGNS, *TRAINING_CAMPAIGNS, *TRAINING_JUDGES)
    if name not in names:
        raise UnknownNameError("campaign", name, names)
    file = (QUARANTINE if name in CAMPAIGNS else TRAINING_QUARANTINE) / f"{name}.csv"
    return pd.read_csv(file, dtype=str, keep_default_na=False) if file.is_file() else empty_quarantine()
