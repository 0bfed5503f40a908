from dataclasses import replace

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.specs import Offer
from roofcast.serving.recommend.demand.constraints import Constraints, Speculation
from roofcast.serving.recommend.search.configurations import Replica
from roofcast.serving.recommend.search.deployment_sizes import Pairs, group_offers

CATALOG = load_catalog()
OFFER = next(o for o in CATALOG.offers if (o.accelerator, o.pricing) == ("nvidia-h100-sxm-80gb", "on_demand"))
REPLICA = Replica("nvidia-h100-sxm-80gb", engine="vllm", weight_precision="bf16")


def n_group(replicas: list[Replica], offers: list[Offer]) -> int:
    pairs = Pairs.build(replicas, offers, CATALOG.accelerators, Constraints())
    assert len(pairs.row) == len(replicas) * len(offers)
    return len(set(group_offers(replicas, offers, pairs).tolist()))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"engine": "sglang"}, 1),
        ({"weight_precision": "fp8"}, 2),
        ({"speculation": Speculation("eagle", 3, 0.7)}, 2),
        ({"accelerator": "nvidia-h100-nvl-94gb"}, 2),
    ],
)
def test_replicas_share_an_entry_unless_hardware_precision_or_drafts_differ(
    change: dict[str, object], expected: int
) -> None:
    other = replace(REPLICA, **change)  # type: ignore[arg-type]
    offers = [
        OFFER.model_copy(update={"accelerator": name}) for name in sorted({REPLICA.accelerator, other.accelerator})
    ]
    pairs = Pairs.build([REPLICA, other], offers, CATALOG.accelerators, Constraints())
    assert len(set(group_offers([REPLICA, other], offers, pairs).tolist())) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"region": "elsewhere"}, 1),
        ({"provider": "another"}, 1),
        ({"pricing": "spot"}, 2),
        ({"market": "reseller"}, 2),
    ],
)
def test_offers_share_an_entry_unless_pricing_or_market_differ(change: dict[str, str], expected: int) -> None:
    assert n_group([REPLICA], [OFFER, OFFER.model_copy(update=change)]) == expected
