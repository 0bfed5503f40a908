import math

import numpy as np

from roofcast.data.catalog import load_catalog
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.serving.recommend.demand.constraints import Constraints, Speculation
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.search.configurations import (
    Replica,
    assume_acceptance,
    describe_replicas,
    enumerate_replicas,
    replica_table,
)
from tests.builders import a_model

CATALOG = load_catalog()
OFFERS = [offer for offer in CATALOG.offers if offer.accelerator == "nvidia-h100-sxm-80gb"]
EAGLE = Speculation("eagle", 3, 0.7)


def replicas_of(constraints: Constraints) -> list[Replica]:
    return enumerate_replicas(a_model(), CATALOG.accelerators, OFFERS, constraints)[0]


def test_speculation_is_searched_where_it_is_requested_and_not_in_pipelines() -> None:
    plain = replicas_of(Constraints())
    both = replicas_of(Constraints(speculations=(None, EAGLE)))
    assert {replica.speculation for replica in plain} == {None}
    assert [replica for replica in both if not replica.speculation] == plain
    speculative = [replica for replica in both if replica.speculation]
    assert len(speculative) == sum(replica.pp == 1 and replica.engine != "trtllm" for replica in plain)
    assert replicas_of(Constraints(speculations=(EAGLE,))) == speculative


def test_engines_of_desks_do_not_read_the_repositories_of_servers() -> None:
    constraints = Constraints(
        engines=frozenset({"vllm", "llama.cpp"}),
        weight_precisions=frozenset({"int4"}),
        checkpoints={"int4": "owner/model-AWQ"},
    )
    found = {(replica.engine, replica.checkpoint) for replica in replicas_of(constraints)}
    assert found == {("vllm", "owner/model-AWQ"), ("llama.cpp", "")}


def test_tokens_and_acceptance_enter_the_estimate() -> None:
    constraints = Constraints(speculations=(None, EAGLE))
    replicas, demand = replicas_of(constraints), Demand(500, 100, 8, None, ())
    table = replica_table(replicas, a_model(), demand, constraints)
    descriptors = describe_replicas(table, a_model(), CATALOG.accelerators)
    is_speculative = np.array([replica.speculation is not None for replica in replicas])
    assert (descriptors["config.n_draft_token"] == np.where(is_speculative, 3.0, 0.0)).all()
    assert (descriptors["config.acceptance_ratio"][is_speculative] == 0.7).all()
    assert "speculation" not in replica_table(replicas, a_model(), demand, Constraints())


def test_an_acceptance_that_is_not_given_is_the_engines() -> None:
    blank = Replica("nvidia-h100-sxm-80gb", engine="vllm", speculation=Speculation("mtp", 2))
    given = Replica("nvidia-h100-sxm-80gb", engine="new", speculation=EAGLE)
    plain = Replica("nvidia-h100-sxm-80gb")
    filled = assume_acceptance([blank, given, plain], DEFAULT_COEFFICIENTS)
    assert filled[1:] == [given, plain]
    assert filled[0].speculation is not None
    assert filled[0].speculation.chain_acceptance_ratio is not None
    assert 0 < filled[0].speculation.chain_acceptance_ratio < 1
    assert not math.isnan(filled[0].speculation.chain_acceptance_ratio)
