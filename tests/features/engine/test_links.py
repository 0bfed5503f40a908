from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.features.engine.links import (
    NETWORKS,
    Links,
    all_gather_s,
    all_reduce_s,
    all_to_all_s,
    direct_all_reduce_s,
    point_to_point_s,
    reduce_scatter_s,
    ring_all_reduce_s,
    tree_all_reduce_s,
)
from roofcast.features.queries import FloatArray

Collective = Callable[[FloatArray, float, Links], FloatArray]
Algorithm = Callable[[FloatArray, float, float, float], FloatArray]
COLLECTIVES: tuple[Collective, ...] = (all_reduce_s, all_gather_s, reduce_scatter_s, all_to_all_s)


def some_links(*, scale: float = 1.0, domain: float = 8.0, is_direct: float = 1.0) -> Links:
    return Links(domain, 400e9 * scale, 1e-6 / scale, 40e9 * scale, 5e-6 / scale, 3e-6 / scale, is_direct)


@pytest.mark.parametrize("collective", COLLECTIVES)
@given(byte=st.floats(0, 1e11), factor=st.floats(1, 1e3), n=st.integers(1, 64), is_direct=st.sampled_from([0.0, 1.0]))
def test_more_bytes_take_longer(collective: Collective, byte: float, factor: float, n: int, is_direct: float) -> None:
    links = some_links(is_direct=is_direct)
    small, large = (collective(np.array([b]), float(n), links)[0] for b in (byte, byte * factor))
    assert large >= small * (1 - 1e-12)


@pytest.mark.parametrize("collective", COLLECTIVES)
@given(byte=st.floats(0, 1e11), scale=st.floats(1, 1e3), n=st.integers(1, 64))
def test_better_links_are_never_slower(collective: Collective, byte: float, scale: float, n: int) -> None:
    better = collective(np.array([byte]), float(n), some_links(scale=scale))[0]
    assert better <= collective(np.array([byte]), float(n), some_links())[0] * (1 + 1e-12)


@pytest.mark.parametrize("collective", COLLECTIVES)
@given(byte=st.floats(0, 1e11))
def test_one_rank_has_nothing_to_say(collective: Collective, byte: float) -> None:
    assert collective(np.array([byte]), 1.0, some_links())[0] == 0.0


@pytest.mark.parametrize("collective", COLLECTIVES)
@given(byte=st.floats(1e3, 1e11), n=st.sampled_from([2.0, 4.0, 8.0, 16.0, 32.0]))
def test_a_smaller_domain_is_never_faster(collective: Collective, byte: float, n: float) -> None:
    wide, narrow = (collective(np.array([byte]), n, some_links(domain=d))[0] for d in (32.0, 4.0))
    assert narrow >= wide * (1 - 1e-12)


@given(byte=st.floats(1e9, 1e11), n=st.sampled_from([2.0, 4.0, 8.0, 16.0, 64.0]))
def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(byte: float, n: float) -> None:
    links = Links(8.0, 1e9, 0.0, 1e8, 0.0, is_direct=0.0)
    both = reduce_scatter_s(np.array([byte]), n, links) + all_gather_s(np.array([byte]), n, links)
    assert all_reduce_s(np.array([byte]), n, links) == pytest.approx(both)


@pytest.mark.parametrize("algorithm", [ring_all_reduce_s, tree_all_reduce_s, direct_all_reduce_s])
@given(byte=st.floats(1e6, 1e11), n=st.integers(2, 64))
def test_no_all_reduce_sends_less_than_each_rank_must(algorithm: Algorithm, byte: float, n: int) -> None:
    """Patarasuk and Yuan, 2009: 2 (n - 1) / n of the message leave each rank; a tree sends both halves whole."""
    time_s = algorithm(np.array([byte]), float(n), 1e9, 0.0)[0]
    least_s = 2 * (n - 1) / n * byte / 1e9
    assert least_s * (1 - 1e-12) <= time_s <= 2 * byte / 1e9


def test_a_small_message_costs_one_step_and_across_domains_the_network_too() -> None:
    links = some_links()
    assert all_reduce_s(np.zeros(1), 8.0, links)[0] == pytest.approx(4e-6)
    assert all_reduce_s(np.zeros(1), 16.0, links)[0] == pytest.approx(14e-6)


def test_a_wide_area_hop_takes_its_latency() -> None:
    slow = NETWORKS["wide_area_100m"]
    links = Links(1.0, 1e9, 0.0, slow.byte_per_s, slow.latency_s)
    hop = point_to_point_s(np.array([12.5e6]), np.array([False]), links)
    assert hop[0] == pytest.approx(1.05)


def test_every_network_has_a_source() -> None:
    assert all(n.source and n.byte_per_s > 0 and n.latency_s > 0 for n in NETWORKS.values())
