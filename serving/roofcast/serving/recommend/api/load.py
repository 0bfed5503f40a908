"""Load of an answer: users who think are not requests in flight."""

from roofcast.data.units import S_PER_H
from roofcast.serving.counts import count_text, three_digits
from roofcast.serving.recommend.answer.parts import PeakLoad, Recommendation
from roofcast.serving.recommend.demand.demand import Demand


def peak_load(demand: Demand, result: Recommendation) -> PeakLoad:
    """Return the load at the peak: users or request rate, think time, and requests in flight on the first entry.

    Without an entry the requests in flight of users who think are unknown, as those of arrivals at a rate are.
    """
    entry = result.entries[0] if result.entries else None
    in_flight = None if entry is None else entry.load_per_replica * entry.n_replica
    is_of_users = demand.unit == "users"
    if is_of_users and not demand.think_time_s:
        in_flight = demand.peak_load
    if is_of_users:
        who = f"{count_text(demand.peak_load, 'user')}, {three_digits(demand.think_time_s)} s think time"
    elif demand.is_endless:
        n = demand.n_batch_request
        who = f"{'no load given' if n is None else count_text(n, 'request')}: replicas are as busy as pays"
    elif demand.is_batch:
        hours = demand.think_time_s / S_PER_H
        who = f"{count_text(demand.peak_load, 'request')} within {three_digits(hours)} hours"
    else:
        who = f"{count_text(demand.peak_load, 'request')} a second"
    waiting = (
        "" if in_flight is None else f" = {three_digits(in_flight)} request{'s' if in_flight != 1 else ''} in flight"
    )
    return PeakLoad(
        users=demand.peak_load if is_of_users else None,
        think_time_s=demand.think_time_s if is_of_users else 0.0,
        request_rate_per_s=demand.peak_load if demand.users is None else None,
        requests_in_flight=in_flight,
        text=f"{who}{waiting}",
    )
