from __future__ import annotations

import subprocess
import sys

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, OutOfRangeError
from roofcast.serving.candidates import TENSOR_PARALLEL, enumerate_candidates, most_users, user_levels
from roofcast.serving.demand import Constraints, Demand
from roofcast.serving.recommender import recommend
from roofcast.serving.slo import parse_limit
from roofcast.serving.workbench import Workbench
from tests.builders import a_model

LIMITS = (parse_limit("itl:p50<=60ms"),)


def a_demand(users: float = 50, limits: tuple[str, ...] = ("itl:p50<=60ms",)) -> Demand:
    return Demand(500, 100, users, None, tuple(map(parse_limit, limits)))


def test_the_recommender_knows_no_http() -> None:
    code = (
        "import sys; import roofcast.serving.recommender; "
        "sys.exit(bool({'fastapi', 'starlette', 'uvicorn', 'typer'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603


def test_splits_divide_the_heads_and_fit_an_instance() -> None:
    catalog = load_catalog()
    largest: dict[str, int] = {}
    for offer in catalog.offers:
        largest[offer.accelerator] = max(largest.get(offer.accelerator, 0), offer.n_accelerator)
    candidates = enumerate_candidates(a_model(n_head=20, n_kv_head=20), catalog.accelerators, catalog.offers)
    assert {c.accelerator for c in candidates} == set(largest)
    assert {c.tp for c in candidates} == {1, 2, 4}
    assert all(c.tp <= largest[c.accelerator] for c in candidates)
    assert {c.tp for c in candidates} <= set(TENSOR_PARALLEL)


def test_no_replica_is_loaded_beyond_what_was_measured(bench: Workbench) -> None:
    bundle = bench.in_service.bundle
    levels, most = user_levels(bundle), most_users(bundle)
    assert levels[0] == 1
    assert levels[-1] == most * max(TENSOR_PARALLEL)
    result = recommend(
        bench.in_service.bundle, a_model(), load_catalog(), a_demand(users=1e5, limits=("itl:p50<=9s",))
    )
    assert all(entry.users_per_replica <= most * entry.candidate.tp for entry in result.entries)


def test_every_candidate_is_ranked_or_rejected(bench: Workbench) -> None:
    result = recommend(bench.in_service.bundle, a_model(), load_catalog(), a_demand(), n_entry=10_000)
    ranked = {entry.candidate for entry in result.entries}
    rejected = {rejection.candidate for rejection in result.rejections}
    assert not ranked & rejected
    assert len(ranked) + len(rejected) == result.n_candidate


def test_a_tight_budget_turns_entries_into_rejections(bench: Workbench) -> None:
    bundle = bench.in_service.bundle
    free = recommend(bundle, a_model(), load_catalog(), a_demand(), n_entry=10_000)
    budget = free.entries[len(free.entries) // 2].cost_usd_per_h
    bound = recommend(
        bundle, a_model(), load_catalog(), a_demand(), Constraints(max_usd_per_h=budget), n_entry=10_000
    )
    kept = [entry for entry in free.entries if entry.cost_usd_per_h <= budget]
    assert [e.cost_usd_per_h for e in bound.entries] == [e.cost_usd_per_h for e in kept]


def test_a_level_or_context_out_of_reach_is_refused_before_anything_is_predicted(bench: Workbench) -> None:
    bundle = bench.in_service.bundle
    with pytest.raises(OutOfRangeError, match=r"ask for at most 0\.9[0-8]"):
        recommend(bundle, a_model(), load_catalog(), a_demand(), level=0.99)
    with pytest.raises(InputError, match="n_input_token: 500 with 100 output exceeds the model's context of 512"):
        recommend(bundle, a_model(max_context_token=512), load_catalog(), a_demand())


def test_weights_in_fewer_bits_need_less_memory(bench: Workbench) -> None:
    bounds = [Constraints(weight_precision=p) for p in ("bf16", "int4")]
    used = [
        recommend(bench.in_service.bundle, a_model(), load_catalog(), a_demand(), b).entries[0].memory_used_byte
        for b in bounds
    ]
    assert used[1] < used[0]
