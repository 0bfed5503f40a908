import numpy as np
import pandas as pd

from judge.protocols.campaign_rows import CampaignRows
from judge.protocols.fold_lines import COLUMNS
from research.measure_next_replay import BUDGETS, LEAST_RUN, page, spread, units_of


def rows_of(n_run: int) -> CampaignRows:
    """Return runs of an owner with two statistics each, and one run of another owner."""
    run = np.repeat(np.arange(n_run), 2)
    table = pd.DataFrame({"run": run, "statistic": ["mean", "p95"] * n_run, "rule": "", "engine": "vllm"})
    table = pd.concat([table, table.head(1).assign(run=n_run)], ignore_index=True)
    stacks = ["ours/rig"] * 2 * n_run + ["theirs"]
    table = table.assign(accelerator="a", campaign="c", stack=stacks, **dict.fromkeys(COLUMNS, 1.0))
    return CampaignRows(table, table[[]], table[list(COLUMNS)], pd.Series("x", table.index))


def test_a_run_is_either_in_the_pool_or_judged() -> None:
    (unit,) = units_of(rows_of(LEAST_RUN), "ours")
    assert (len(unit.pool), len(unit.judged)) == (LEAST_RUN / 2, LEAST_RUN)
    assert not {i // 2 for i in unit.pool} & {i // 2 for i in unit.judged}
    assert units_of(rows_of(LEAST_RUN - 1), "ours") == []


def test_spread_runs_begin_with_the_corners() -> None:
    load = [1.0, 2.0, 4.0, 8.0, 16.0]
    X = pd.DataFrame({"workload.n_input_token": 100.0, "workload.n_output_token": 10.0, "workload.concurrency": load})
    order = spread(X, 4, np.random.default_rng(0))
    assert len(set(order)) == 4
    assert {0, 4} <= set(order[:3])


def test_the_page_compares_the_strategies_by_unit() -> None:
    error = {"none": 0.5, "proposal": 0.1, "random": 0.2, "spread": 0.3}
    lines = [
        {"owner": "ours", "unit": "u", "strategy": name, "draw": 0, "n_run": n, "metric": "tpot", "error": e, "n": 9}
        for name, e in error.items()
        for n in (BUDGETS if name != "none" else (0,))
    ]
    text = page(pd.DataFrame(lines))
    assert "| tpot | 3 | 0.500 | 0.100 | 0.200 | 0.300 | 1 of 1 |" in text
    assert "With 1 run the proposal's mean error is below that of random choice in tpot." in text
    worse = pd.DataFrame(lines).replace({"error": {0.1: 0.25}})
    assert "With 3 runs the proposal's mean error is below that of random choice in no metric." in page(worse)
