import numpy as np
import pytest

from roofcast.features.descriptors.host_settings import clock_ratio
from tests.builders import a_question, an_accelerator, describe_questions

GEFORCE = {"form_factor": "PCIe consumer", "link": "pcie4", "link_bandwidth_byte_per_s": 64e9, "pcie_gen": 4}


@pytest.mark.parametrize(("limit_w", "measured"), [(300.0, 0.943), (250.0, 0.853), (200.0, 0.601), (150.0, 0.258)])
def test_clock_follows_the_prefill_speed_of_power_limited_cards(limit_w: float, measured: float) -> None:
    assert clock_ratio(np.array([limit_w]), np.array([350.0]))[0] == pytest.approx(measured, abs=0.045)


def test_a_limit_above_the_design_power_changes_nothing() -> None:
    assert clock_ratio(np.array([400.0, np.nan]), np.full(2, 350.0)).tolist() == [1.0, 1.0]


def test_a_power_limit_lowers_peaks_and_draw_and_leaves_the_bandwidth() -> None:
    accelerator = an_accelerator(tdp_w=350.0)
    free, limited = (
        describe_questions(a_question(power_limit_w=limit), accelerator=accelerator).iloc[0]
        for limit in (None, 250.0)
    )
    assert limited["hardware.flop_per_s"] / free["hardware.flop_per_s"] == pytest.approx(0.85, abs=0.01)
    assert limited["hardware.tdp_w"] == 250.0
    assert limited["hardware.bandwidth_byte_per_s"] == free["hardware.bandwidth_byte_per_s"]


@pytest.mark.parametrize(
    ("settings", "peer_to_peer", "link_byte_per_s"),
    [
        ({}, 0.0, 64e9),
        ({"peer_to_peer": "on"}, 1.0, 64e9),
        ({"peer_to_peer": "on", "link_bandwidth_byte_per_s": 56e9}, 1.0, 112e9),
    ],
)
def test_geforce_has_no_peer_to_peer_access_by_default(
    settings: dict[str, object], peer_to_peer: float, link_byte_per_s: float
) -> None:
    row = describe_questions(a_question(**settings), accelerator=an_accelerator(**GEFORCE)).iloc[0]
    assert row["hardware.peer_to_peer"] == peer_to_peer
    assert row["hardware.link_byte_per_s"] == link_byte_per_s


def test_a_fabric_is_not_used_without_peer_to_peer_access() -> None:
    fabric = an_accelerator(form_factor="SXM5", link="nvlink4", link_bandwidth_byte_per_s=900e9, pcie_gen=5)
    rows = [describe_questions(a_question(peer_to_peer=switch), accelerator=fabric).iloc[0] for switch in ("", "off")]
    assert [row["hardware.link_byte_per_s"] for row in rows] == [900e9, 128e9]
