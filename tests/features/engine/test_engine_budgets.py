import numpy as np
import pytest

from roofcast.features.columns import ENGINES
from roofcast.features.engine.engine_budgets import BUDGETS, OTHER_BUDGET, activation_byte, graph_byte, usable_byte
from tests.builders import an_example


@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_takes_its_share(engine: str) -> None:
    budget = BUDGETS.get(engine, OTHER_BUDGET)
    d = an_example(config__engine=ENGINES.index(engine), config__memory_ratio=budget.ratio)
    own = budget.own_byte + budget.is_profiled * activation_byte(d)[0]
    share = budget.card_ratio * (1.0 if budget.is_of_free else budget.ratio)
    expected = share * (80e9 - own) if engine == "sglang" else share * 80e9 - own
    assert usable_byte(d)[0] == pytest.approx(expected)


def test_a_chunk_and_the_sampler_make_the_peak() -> None:
    few = {"config__max_num_seqs": 1.0}
    assert activation_byte(an_example(**few))[0] == 8192 * 2 * (3 * 4096 + 3 * 11008)
    assert activation_byte(an_example(**few, config__tp=2))[0] == 8192 * 2 * (3 * 4096 + 3 * 11008 / 2)
    many = an_example(config__max_num_seqs=1024.0)
    assert activation_byte(many)[0] == 8192 * 2 * 4096 + 30 * 1024 * 32000
    assert activation_byte(many | {"config.is_recent": np.ones(1)}) < activation_byte(many)


def test_recent_releases_count_graphs_in_their_share() -> None:
    few = {"config__max_num_seqs": 8.0}
    old, new, eager = (
        usable_byte(d)[0]
        for d in (
            an_example(**few),
            an_example(**few, config__is_recent=1.0),
            an_example(**few, config__is_recent=1.0, config__is_eager=1.0),
        )
    )
    assert old - new == pytest.approx(graph_byte(an_example(**few))[0])
    assert eager == old


def test_ranks_keep_buffers_for_messages() -> None:
    one, two = (usable_byte(an_example(config__n_accelerator=n, config__tp=1.0))[0] for n in (1.0, 2.0))
    assert two < 2 * one


def test_the_largest_image_may_make_the_peak_and_ranks_share_it() -> None:
    """Servers of Qwen3.6-35B-A3B and Qwen3.8-27B, whose towers have 0.9 GB, keep some GiB at any chunk."""
    tower = {"model__tower_byte": 0.9e9, "config__chunk_token": 2048.0, "config__max_num_seqs": 1.0}
    alone, halved = (activation_byte(an_example(**tower, config__tp=tp))[0] for tp in (1.0, 2.0))
    assert 1.1 < alone / 2**30 < 1.4
    assert halved == pytest.approx(alone / 2)
