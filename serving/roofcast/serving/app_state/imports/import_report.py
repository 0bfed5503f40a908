"""Report of the imported campaigns: how many rows training uses, and why it skips the others."""

from typing import Any, Final

import pandas as pd

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import Catalog
from roofcast.data.measurements.validation import row_ids
from roofcast.training.dataset.review import review
from roofcast.training.dataset.training_set import TRAINED_ON

COMES_WITH_PACKAGE: Final = "comes_with_package"
"""Rule of a row that is also a row of a shipped campaign."""

QUARANTINED: Final = "quarantined"
"""State of rows that no training uses before they are confirmed, and their rule."""


def own_campaign_report(stored: pd.DataFrame, catalog: Catalog) -> list[dict[str, Any]]:
    """Return a row for each imported campaign, with the columns of `review.campaign_report`.

    An import stores all rows of a file or none; the number of rows read is not recorded. The rules that compare rows
    do so within a model and an accelerator, so that only the shipped rows of those are reviewed beside.

    `stored`: all measurements of the store, with their `state`; withdrawn ones do not count.
    """
    stored = stored[stored["state"] != "withdrawn"]
    if stored.empty:
        return []
    shipped = load_campaigns(TRAINED_ON)
    shipped = shipped[_setups(shipped).isin(_setups(stored))]
    is_held = stored["state"] == QUARANTINED
    is_new = ~pd.Series(row_ids(stored), index=stored.index).isin(row_ids(shipped)) & ~is_held
    rows = pd.concat([shipped, stored.loc[is_new, shipped.columns]], ignore_index=True)
    rejected = review(rows, catalog.models, catalog.accelerators)["rule"]
    own_rejected = rejected[rejected.index >= len(shipped)]
    rules = (
        pd.Series(COMES_WITH_PACKAGE, index=stored.index, dtype=object).mask(is_new, "").mask(is_held, QUARANTINED)
    )
    rules.loc[stored.index[is_new][own_rejected.index - len(shipped)]] = own_rejected.to_numpy()
    return [_row(str(name), rules[stored["campaign"] == name]) for name in sorted(stored["campaign"].unique())]


def _setups(rows: pd.DataFrame) -> pd.Series:
    return rows["model"] + "\n" + rows["accelerator"]


def _row(name: str, rules: pd.Series) -> dict[str, Any]:
    counts = rules[rules != ""].value_counts()
    return {
        "campaign": name,
        "n_read": None,
        "n_rejected": 0,
        "n_kept": len(rules),
        "n_learnable": len(rules) - int(counts.sum()),
        "rejected": "",
        "not_learnt": ", ".join(f"{rule} {n}" for rule, n in counts.items()),
    }
