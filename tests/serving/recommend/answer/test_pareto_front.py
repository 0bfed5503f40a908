"""The front keeps what the answer promises: its deployments serve the required load at the confidence."""

from collections.abc import Sequence

import numpy as np
import pytest

from roofcast.serving.composition import Service
from roofcast.serving.recommend.answer import pareto_front
from roofcast.serving.recommend.answer.parts import Entry, FrontPoint
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.demand.slo import parse_limit
from roofcast.serving.recommend.recommendation import recommend
from roofcast.serving.recommend.search.search import Search
from tests.builders import a_model
from tests.serving.recommend.test_recommender import Market

CONFIDENCE = 0.8


@pytest.mark.parametrize(("users", "think_time_s", "headroom"), [(200, 0.0, 0.4), (2000, 20.0, 0.0), (700, 5.0, 0.3)])
def test_each_point_meets_the_confidence_at_the_load_it_is_sized_for(
    service: Service, monkeypatch: pytest.MonkeyPatch, users: float, think_time_s: float, headroom: float
) -> None:
    searches: list[Search] = []
    plain = pareto_front.pareto_front

    limits = tuple(map(parse_limit, ("itl:p50<=40ms", "ttft:p95<=2s")))
    demand = Demand(500, 100, users, None, limits, think_time_s=think_time_s, headroom=headroom)

    def keep(search: Search, entries: Sequence[Entry]) -> tuple[FrontPoint, ...]:
        searches.append(search)
        return plain(search, entries)

    monkeypatch.setattr("roofcast.serving.recommend.recommendation.pareto_front", keep)
    result = recommend(service.active_model.bundle, a_model(), Market(), demand, confidence=CONFIDENCE)
    (search,) = searches
    assert result.pareto
    rows = {replica: i for i, replica in enumerate(search.problem.replicas)}
    everything = np.arange(search.grid.loads.shape[1]) <= search.grid.top[:, None]
    of_front = np.zeros(len(rows), dtype=bool)
    of_front[[rows[point.replica] for point in result.pareto]] = True
    search.grid.evaluate(everything & of_front[:, None])
    for point in result.pareto:
        row = rows[point.replica]
        is_met = search.grid.p_met[row] >= CONFIDENCE
        is_enough = search.grid.served[row] * point.n_replica >= demand.required_load * (1 - 1e-9)
        is_between = (
            point.p_limits_met >= CONFIDENCE and is_met[search.grid.loads[row] <= point.load_per_replica].all()
        )
        assert (is_met & is_enough & everything[row]).any() or is_between, point
