"""Regret of choosing the accelerator with the least predicted cost, among those measured for one workload.

A candidate is a configuration of an accelerator and a count; a decision has at least two such pairs. The candidate of
least predicted cost per output token is recommended, by P4's predictions with the LLM's lineage held out; the regret
is its measured cost relative to the least, minus one. Throughputs that the source derived from other outcomes count
as measured here. Open loops are excluded, because the request rate sets their throughput.
"""

from collections.abc import Mapping
from typing import Final

import pandas as pd

from judge.protocols.fold_lines import DERIVED
from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.prices.price_book import PriceBook
from roofcast.data.units import S_PER_H

TOLERANCE: Final = 0.05
"""Regret up to which a recommendation counts as near-optimal."""

METRICS: Final = ("output_throughput", DERIVED)

DECISION: Final = (
    "campaign", "model", "statistic", "n_input_token", "n_output_token", "load", "concurrency", "request_rate",
)  # fmt: skip
"""Columns that the candidates of one decision share."""

HARDWARE: Final = ("accelerator", "n_accelerator")


def least_prices(catalog: Catalog | None = None) -> dict[str, float]:
    """Return the lowest on-demand price of an accelerator-hour in US dollars, by accelerator.

    Prices are those of the catalogue's newest day, whatever the date of the measurement.
    """
    offers = (catalog or load_catalog()).offers
    book = PriceBook(offers, max(offer.as_of for offer in offers))
    prices: dict[str, float] = {}
    for offer in book.offers.values():
        if offer.pricing == "on_demand":
            price = float(offer.price_usd_per_h) / offer.n_accelerator
            prices[offer.accelerator] = min(price, prices.get(offer.accelerator, price))
    return prices


def decision_candidates(dump: pd.DataFrame, price_usd_per_h: Mapping[str, float]) -> pd.DataFrame:
    """Return the candidates of every decision, from P4's dump.

    Rows with equal descriptors, such as runs of two dates, are one candidate at their median.

    `dump`: result of `predict_campaigns`. `price_usd_per_h`: of one accelerator, by id; accelerators without a price
    are excluded.

    Returns
    -------
    One row per candidate: `decision` (its number), `DECISION`, `HARDWARE`, `engine`, `weight_precision`, measured
    `cost_usd_per_token`, `predicted_cost_usd_per_token`, and `is_recommended`
    """
    rows = _cost_rows(dump)
    price = rows["accelerator"].map(dict(price_usd_per_h)) * rows["n_accelerator"]
    rows = rows.assign(price=price / S_PER_H)[price.notna() & rows["predicted"].notna()]
    key = [*DECISION, "lineage", *HARDWARE, "engine", "weight_precision", "question"]
    table = rows.groupby(key, dropna=False, sort=False)[["measured", "predicted", "price"]].median().reset_index()
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
    """Return one row per decision: `campaign`, `n_candidate` and `regret`.

    Examples
    --------
    >>> candidates = pd.DataFrame({"decision": [0, 0], "campaign": "ours", "cost_usd_per_token": [3.0, 2.0],
    ...                            "is_recommended": [True, False]})
    >>> regrets(candidates)["regret"].tolist()
    [0.5]
    """
    by_decision = candidates.groupby("decision")
    recommended = candidates[candidates["is_recommended"]].set_index("decision")
    least = by_decision["cost_usd_per_token"].min()
    return pd.DataFrame(
        {
            "campaign": recommended["campaign"],
            "n_candidate": by_decision.size(),
            "regret": recommended["cost_usd_per_token"] / least - 1,
        }
    ).reset_index()


def regret_figures(decisions: pd.DataFrame) -> dict[str, float]:
    """Return median, 90th percentile and mean regret, the share within `TOLERANCE`, and the number of decisions.

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
    """Return the number of measurements excluded for lack of a price, by accelerator."""
    missing = _cost_rows(dump)["accelerator"]
    counts = missing[~missing.isin(list(price_usd_per_h))].value_counts()
    return {str(name): int(n) for name, n in counts.items()}


def _cost_rows(dump: pd.DataFrame) -> pd.DataFrame:
    has_cost = dump["metric"].isin(METRICS) & (dump["load"] != "open_loop") & (dump["rule"] == "")
    return dump[has_cost]


def regrets_by_campaign(decisions: pd.DataFrame) -> pd.DataFrame:
    """Return `regret_figures` and the mean number of candidates of all decisions and of each campaign."""
    groups = [("all", decisions), *((str(name), part) for name, part in decisions.groupby("campaign"))]
    return pd.DataFrame(
        [{"campaign": n, **regret_figures(part), "n_candidate": part["n_candidate"].mean()} for n, part in groups]
    )
