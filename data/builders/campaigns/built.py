"""What building a campaign gives: the rows kept, the rows set aside and why."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from builders.quarantine import empty_quarantine


@dataclass(frozen=True)
class Built:
    """A campaign as built from its published files.

    Parameters
    ----------
    rows
        Validated measurements.
    n_read
        Published rows that were read; one of them may give several measurements, one a statistic.
    quarantined
        Published rows that were set aside, with columns `QUARANTINE_COLUMNS`: what identifies the row in its source,
        the rule's short name, and what it found. Nothing is dropped without a line here.
    """

    rows: pd.DataFrame
    n_read: int
    quarantined: pd.DataFrame = field(default_factory=empty_quarantine)
