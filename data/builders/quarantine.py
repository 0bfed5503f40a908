"""Quarantine of the campaigns: the published rows that became no measurement, each with the rule that says why."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.data.campaigns import CAMPAIGNS
from roofcast.data.errors import UnknownNameError
from roofcast.data.training_campaigns import TRAINING_CAMPAIGNS

QUARANTINE_COLUMNS: Final = ("reference", "reason", "detail")
"""What identifies the row in its source, the rule's short name, and what the rule found."""

QUARANTINE: Final = Path(__file__).parent / "campaigns" / "quarantine"
TRAINING_QUARANTINE: Final = Path(__file__).parent / "training_campaigns" / "quarantine"
"""Folders with one CSV file for each campaign that set rows aside."""


def empty_quarantine() -> pd.DataFrame:
    """Return a quarantine without rows."""
    return pd.DataFrame({name: pd.Series(dtype=str) for name in QUARANTINE_COLUMNS})


def load_quarantine(name: str) -> pd.DataFrame:
    """Return the quarantine of a campaign of inference or training, with columns `QUARANTINE_COLUMNS`.

    Raises
    ------
    UnknownNameError
        If no campaign has this name.

    Examples
    --------
    >>> sorted(set(load_quarantine("torchtune")["reason"]))
    ['duplicate', 'not_training']
    """
    if name not in {*CAMPAIGNS, *TRAINING_CAMPAIGNS}:
        raise UnknownNameError("campaign", name, [*CAMPAIGNS, *TRAINING_CAMPAIGNS])
    file = (QUARANTINE if name in CAMPAIGNS else TRAINING_QUARANTINE) / f"{name}.csv"
    return pd.read_csv(file, dtype=str, keep_default_na=False) if file.is_file() else empty_quarantine()
