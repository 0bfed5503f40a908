"""Owners of stored rows in training: rows of API keys earn weight with time.

Rows that keys stored in the last `PROOF_DAYS` days, and rows of unknown origin, belong to one owner, `UNPROVEN`. So
new keys, however many, have together the influence of one owner in a month, not of one a night.
"""

import datetime as dt
from typing import Final

import pandas as pd

UNPROVEN: Final = "~unproven"
"""Owner of rows that have not earned weight; no API key has such a name."""

PROOF_DAYS: Final = 30
"""Days after which the rows of a key count as that key's: judgement."""


def is_of_unknown_origin(stored: pd.DataFrame) -> pd.Series:
    """Return whether each stored row is older than the records of imports, and no operator has confirmed it."""
    return (stored["import_id"] == "") & (stored["confirmed_by"] == "")


def training_owners(stored: pd.DataFrame, now: dt.datetime) -> pd.Series:
    """Return who owns each stored row in training: its key, blank for an operator, or `UNPROVEN`.

    `stored`: columns `uploader`, `is_operator`, `import_id`, `confirmed_by` and `added_at`. `now`: with its zone.

    Examples
    --------
    >>> day = pd.Timestamp("2026-03-01", tz="UTC")
    >>> stored = pd.DataFrame({"uploader": ["ci", "ci", "boss", ""], "is_operator": [False, False, True, True]})
    >>> stored["import_id"], stored["confirmed_by"] = ["1", "2", "3", ""], ""
    >>> stored["added_at"] = [day, day - pd.Timedelta(days=31), day, day]
    >>> training_owners(stored, day.to_pydatetime()).tolist()
    ['~unproven', 'ci', '', '~unproven']
    """
    owners = stored["uploader"].astype(object).mask(stored["is_operator"].astype(bool), "")
    age = pd.Timestamp(now) - pd.to_datetime(stored["added_at"], utc=True)
    is_new = (owners != "") & (age < pd.Timedelta(days=PROOF_DAYS))
    return owners.mask(is_new | is_of_unknown_origin(stored), UNPROVEN)
