"""What became of the measurements that were imported here, told as for the campaigns of the package."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import Catalog
from roofcast.data.measurements.validation import row_ids
from roofcast.training.dataset.review import review
from roofcast.training.dataset.training_set import TRAINED_ON

COMES_WITH_PACKAGE: Final = "comes_with_package"
"""Rule of a row that the predictor learns from already, as one of the package's."""


def own_campaign_report(kept: pd.DataFrame, catalog: Catalog) -> list[dict[str, Any]]:
    """Return a row for each campaign of one's own, with the columns of `review.campaign_report`.

    An import keeps a file whole or refuses it, and sets nothing aside; how many rows its files had is not recorded.

    Parameters
    ----------
    kept
        All measurements of the store.
    catalog
        What is known by name, with the models of the store.
    """
    if kept.empty:
        return []
    shipped = load_campaigns(TRAINED_ON)
    is_new = ~pd.Series(row_ids(kept), index=kept.index).isin(row_ids(shipped))
    together = pd.concat([shipped, kept[is_new]], ignore_index=True)
    set_aside = review(together, catalog.models, catalog.accelerators)["rule"]
    own_rules = set_aside[set_aside.index >= len(shipped)]
    rules = pd.Series(COMES_WITH_PACKAGE, index=kept.index, dtype=object).mask(is_new, "")
    rules.loc[kept.index[is_new][own_rules.index - len(shipped)]] = own_rules.to_numpy()
    return [_row(str(name), rules[kept["campaign"] == name]) for name in sorted(kept["campaign"].unique())]


def _row(name: str, rules: pd.Series) -> dict[str, Any]:
    counts = rules[rules != ""].value_counts()
    return {
        "campaign": name,
        "n_read": None,
        "n_quarantined": 0,
        "n_kept": len(rules),
        "n_learnable": len(rules) - int(counts.sum()),
        "quarantine": "",
        "not_learnt": ", ".join(f"{rule} {n}" for rule, n in counts.items()),
    }
