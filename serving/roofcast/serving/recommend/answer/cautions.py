"""Warnings of an answer about its demand, about single entries, and about the instances of any deployment."""

import math
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from roofcast.data.precision_names import WeightFormat
from roofcast.data.prices.regions import is_area, is_located
from roofcast.data.specs import Offer
from roofcast.serving.display_names import count_text, quantity_text
from roofcast.serving.recommend.answer.parts import PredictedMetric, Recommendation
from roofcast.serving.recommend.demand.constraints import Constraints, OwnedNodes
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.demand.presets import PRESETS
from roofcast.serving.recommend.demand.slo import PREFILL_METRICS
from roofcast.serving.recommend.search.configurations import Replica

TAIL_STATISTICS: Final = frozenset({"p90", "p95", "p99"})

LONG_PROMPT_RATIO: Final = 1.5
"""p95 over the mean of prompt lengths above which tail limits need a warning."""

MANY_ACCELERATORS: Final = 16
"""Rented accelerators of one kind above which a deployment has a warning: two nodes of eight."""

TPOT_RATIO: Final = 2.0
"""TPOT over a limit on ITL above which the entry has a warning."""


def demand_warnings(demand: Demand, result: Recommendation) -> list[str]:
    """Return the warnings about users without think time, long prompts, queueing, and a limit on ITL."""
    return [
        *_think_time_warnings(demand),
        *_long_prompt_warnings(demand),
        *_queueing_warnings(demand, result),
        *_itl_warnings(demand, result),
    ]


def copy_warnings(replica: Replica) -> list[str]:
    """Return the warning about a replica that needs a quantised copy of the checkpoint."""
    weights = WeightFormat(replica.weight_precision, replica.weight_bit or math.nan)
    return [f"needs a copy of the checkpoint in {weights}; the engine makes none"]


def tpot_warnings(predictions: Iterable[PredictedMetric], demand: Demand) -> list[str]:
    """Return the warnings about limits on ITL that the TPOT exceeds several times."""
    return [f"{text}; TPOT is what users feel" for text in _above_itl(predictions, demand)]


def offer_warnings(offer: Offer, n_instance: int) -> list[str]:
    """Return the warnings about instances of an offer: more than may be free, or hosted by third parties."""
    warnings = []
    n = n_instance * offer.n_accelerator
    if n > MANY_ACCELERATORS and not isinstance(offer, OwnedNodes):
        warnings.append(f"{n} accelerators are more than {offer.provider} may have free: ask for the quota first")
    if offer.market == "marketplace":
        warnings.append(f"third parties host the instances of {offer.provider}")
    return warnings


def region_warnings(names: Iterable[str], offers: Collection[Offer], constraints: Constraints) -> list[str]:
    """Return a warning if areas are named and offers of unknown country would be within the other constraints."""
    known = {offer.region for offer in offers}
    areas = [name for name in names if is_area(name)]
    unlocated = {region for region in known if not is_located(region)} - constraints.regions
    if not areas or not unlocated:
        return []
    anywhere = replace(constraints, regions=frozenset(unlocated), inventory=())
    left_out = anywhere.admissible_offers(offers)
    providers = sorted({offer.provider for offer in left_out})
    if not providers:
        return []
    whose = f"{count_text(len(left_out), 'offer')} of {count_text(len(providers), 'provider')}"
    cure = f"add the region {' or '.join(sorted(unlocated)[:3])} to admit them"
    where = " and ".join(areas)
    return [f"{whose}, such as {', '.join(providers[:3])}, name no country and are left out of {where}; {cure}"]


def _above_itl(predictions: Iterable[PredictedMetric], demand: Demand) -> list[str]:
    value = {(one.metric, one.statistic): one.value for one in predictions}
    texts = []
    for limit in demand.limits:
        if limit.metric != "itl_s":
            continue
        itl_s, tpot_s = (value[metric, limit.statistic] for metric in ("itl_s", "tpot_s"))
        if tpot_s > TPOT_RATIO * limit.value:
            texts.append(
                f"the predicted {limit.statistic} of ITL is {quantity_text('itl_s', itl_s)} and that of TPOT "
                f"{quantity_text('tpot_s', tpot_s)}, {tpot_s / itl_s:.1f} times the ITL and "
                f"{tpot_s / limit.value:.1f} times its limit {limit.text}"
            )
    return texts


def _think_time_warnings(demand: Demand) -> list[str]:
    if not demand.users or demand.think_time_s or demand.users < 2:
        return []
    measured = ", ".join(name for name, preset in PRESETS.items() if preset.think_time_s)
    return [
        f"workload.think_time_s: is 0, so {demand.peak_load:.10g} users keep as many requests in flight at all times;"
        f" people read and write between requests: give their think time, or a preset that has one ({measured})"
    ]


def _long_prompt_warnings(demand: Demand) -> list[str]:
    limits = [
        limit.text
        for limit in demand.limits
        if limit.metric in PREFILL_METRICS and limit.statistic in TAIL_STATISTICS
    ]
    prompt = demand.lengths[0]
    if not limits or not (p95 := prompt.percentile("p95")) > LONG_PROMPT_RATIO * prompt.mean:
        return []
    return [
        f"workload.n_input_token: every prompt is taken to have the mean length, {prompt.mean:.0f} tokens, so "
        f"{', '.join(limits)} ignores long prompts; for the worst case repeat the request with n_input_token "
        f"{p95:.0f}, their p95, as a number"
    ]


def _queueing_warnings(demand: Demand, result: Recommendation) -> list[str]:
    if not result.entries or demand.is_batch or {limit.metric for limit in demand.limits} & PREFILL_METRICS:
        return []
    median = {one.metric: one.value for one in result.entries[0].predictions if one.statistic == "p50"}
    ttft_s, e2e_s = median["ttft_s"], median["e2e_s"]
    if ttft_s < e2e_s / 2:
        return []
    share = f"the median request of the first entry waits {ttft_s:.3g} s of {e2e_s:.3g} s for its first token"
    return [f"{share}, and no limit bounds that; add one on ttft or e2e"]


def _itl_warnings(demand: Demand, result: Recommendation) -> list[str]:
    above = _above_itl(result.entries[0].predictions, demand) if result.entries else []
    return [f"of the first entry, {text}: gaps that ITL misses count in TPOT; limit tpot" for text in above]
