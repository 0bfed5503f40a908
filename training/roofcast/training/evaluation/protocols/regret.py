"""Decisions: how dear is the accelerator that seems cheapest, among those measured for one LLM and workload.

A candidate is a configuration of an accelerator and a count; a decision has two pairs of these at least. The one of
least predicted cost per output token is recommended, by P4's predictions with the LLM's lineage held out; its regret
is by how much its measured cost exceeds the least. Where the source derived a throughput from other outcomes, that is
the truth. Open loops are no decisions of cost: there the request rate sets the throughput.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pandas as pd

from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.prices.price_book import PriceBook
from roofcast.data.units import S_PER_H
from roofcast.training.evaluation.protocols.campaigns import DERIVED

TOLERANCE: Final = 0.05
"""Regret up to which a recommendation counts as close."""

METRICS: Final = ("output_throughput", DERIVED)

DECISION: Final = (
    "campaign", "model", "statistic", "n_input_token", "n_output_token", "load", "concurrency", "request_rate",
)  # fmt: skip
"""What candidates of one decision share."""

HARDWARE: Final = ("accelerator", "n_accelerator")


def least_prices(catalog: Catalog | None = None) -> dict[str, float]:
    """Return the price of an accelerator's hour, in US dollars, where one is offered on demand: the lowest.

    Prices are those of the catalogue's newest day, whatever the day of the measurement.
    """
    offers = (catalog or load_catalog()).offers
    book = PriceBook(offers, max(offer.as_of for offer in offers))
    ranked = {name: book.for_accelerator(name, "on_demand") for name in {offer.accelerator for offer in offers}}
    return {name: float(some[0].price_usd_per_h) / some[0].n_accelerator for name, some in ranked.items() if some}


def decision_candidates(dump: pd.DataFrame, price_usd_per_h: Mapping[str, float]) -> pd.DataFrame:
    """Return the candidates of every decision, from P4's dump.

    Rows that ask the same question, such as runs of two dates, are one candidate at their median.

    Parameters
    ----------
    dump
        What `predict_campaigns` returned.
    price_usd_per_h
        Of one accelerator, by id; accelerators without are left out.

    Returns
    -------
    One line a candidate: `decision` (its number), `DECISION`, `HARDWARE`, `engine`, `weight_precision`, measured
    `cost_usd_per_token`, `predicted_cost_usd_per_token`, and whether it `is_recommended`
    """
    asked = _asked(dump)
    price = asked["accelerator"].map(dict(price_usd_per_h)) * asked["n_accelerator"]
    asked = asked.assign(price=price / S_PER_H)[price.notna() & asked["predicted"].notna()]
    key = [*DECISION, "lineage", *HARDWARE, "engine", "weight_precision", "question"]
    table = asked.groupby(key, dropna=False, sort=False)[["measured", "predicted", "price"]].median().reset_index()
    table["cost_usd_per_token"] = table["price"] / table["measured"]
    table["predicted_cost_usd_per_token"] = table["price"] / table["predicted"]
    by_decision = table.groupby(list(DECISION), dropna=False, sort=False)
    pair = table["accelerator"] + " x " + table["n_accelerator"].map("{:g}".format)
    is_choice = pair.groupby(by_decision.ngroup()).transform("nunique") > 1
    table = table[is_choice].drop(columns=["measured", "predicted", "price"]).reset_index(drop=True)
    table.insert(0, "decision", table.groupby(list(DECISION), dropna=False, sort=False).ngroup())
    best = table.groupby("decision")["predicted_cost_usd_per_token"].idxmin()
    return table.assign(is_recommended=table.index.isin(best))


def regrets(candidates: pd.DataFrame) -> pd.DataFrame:
    """Return one line a decision: `campaign`, `n_candidate` and `regret`.

    Examples
    --------
    >>> candidates = pd.DataFrame({"decision": [0, 0], "campaign": "ours", "cost_usd_per_token": [3.0, 2.0],
    ...                            "is_recommended": [True, False]})
    >>> regrets(candidates)["regret"].tolist()
    [0.5]
    """
    by_decision = candidates.groupby("decision")
    chosen = candidates[candidates["is_recommended"]].set_index("decision")
    least = by_decision["cost_usd_per_token"].min()
    return pd.DataFrame(
        {
            "campaign": chosen["campaign"],
            "n_candidate": by_decision.size(),
            "regret": chosen["cost_usd_per_token"] / least - 1,
        }
    ).reset_index()


def regret_figures(decisions: pd.DataFrame) -> dict[str, float]:
    """Return median, 90th percentile and mean of the regrets, the share within `TOLERANCE`, and how many there are.

    Examples
    --------
    >>> regret_figures(pd.DataFrame({"regret": [0.0, 0.0, 0.3]}))["within_5"].__round__(2)
    0.67
    """
    regret = decisions["regret"].astype(float)
    return {
        "median_regret": float(regret.median()),
        "p90_regret": float(regret.quantile(0.9)),
        "mean_regret": float(regret.mean()),
        "within_5": float((regret <= TOLERANCE).mean()),
        "n_decision": len(regret),
    }


def without_price(dump: pd.DataFrame, price_usd_per_h: Mapping[str, float]) -> dict[str, int]:
    """Return how many measurements of each accelerator are left out for want of a price."""
    missing = _asked(dump)["accelerator"]
    counts = missing[~missing.isin(list(price_usd_per_h))].value_counts()
    return {str(name): int(n) for name, n in counts.items()}


def _asked(dump: pd.DataFrame) -> pd.DataFrame:
    is_asked = dump["metric"].isin(METRICS) & (dump["load"] != "open_loop") & (dump["rule"] == "")
    return dump[is_asked]
