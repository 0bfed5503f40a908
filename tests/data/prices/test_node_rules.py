"""Offers are nodes of the sizes that their providers sell."""

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.prices.node_rules import is_sold, sold_nodes
from roofcast.data.specs import Offer

OFFERS = load_catalog().offers


def an_offer(provider: str, accelerator: str, **fields: object) -> Offer:
    like = next(o for o in OFFERS if o.market == "provider" and o.pricing == "on_demand")
    own = {
        "provider": provider, "accelerator": accelerator, "region": "unknown", "instance_type": "one",
        "n_accelerator": 1, "price_usd_per_h": 2, "vcpu": 8, "memory_byte": None,
    }  # fmt: skip
    return Offer.parse({**like.model_dump(exclude={"country"}), **own, **fields})


def test_every_shipped_offer_is_sold_as_its_rule_says() -> None:
    assert [offer.id for offer in OFFERS if not is_sold(offer)] == []
    assert {o.pricing for o in OFFERS if o.provider == "gcp" and o.instance_type == "a3-highgpu-1g"} == {"spot"}


@pytest.mark.parametrize(
    ("offer", "nodes"),
    [
        (an_offer("nebius", "nvidia-h100-sxm-80gb"), [(1, 2, 8), (8, 16, 64)]),
        (an_offer("crusoe", "nvidia-h100-sxm-80gb"), [(8, 16, 64)]),
        (an_offer("gcp", "nvidia-h100-sxm-80gb", instance_type="a3-highgpu-1g"), []),
        (an_offer("gcp", "nvidia-h100-sxm-80gb", pricing="spot"), [(1, 2, 8)]),
        (an_offer("vultr", "nvidia-b200-sxm-180gb", n_accelerator=8), []),
        (an_offer("akash", "nvidia-h100-sxm-80gb", market="marketplace"), [(1, 2, 8)]),
        (an_offer("attic", "nvidia-h100-sxm-80gb", n_accelerator=3), [(3, 2, 8)]),
    ],
)
def test_a_price_of_one_becomes_the_nodes_that_are_sold(offer: Offer, nodes: list[tuple[float, ...]]) -> None:
    sold = sold_nodes([offer])
    assert [(one.n_accelerator, float(one.price_usd_per_h), one.vcpu) for one in sold] == nodes
    assert len({one.id for one in sold}) == len(sold)


def test_a_list_with_several_sizes_says_what_each_costs() -> None:
    listed = [an_offer("nebius", "nvidia-h100-sxm-80gb", instance_type=f"{n}x", n_accelerator=n) for n in (1, 8)]
    assert sold_nodes(listed) == listed
