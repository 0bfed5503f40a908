"""Builders of entries and questions with valid defaults."""

from typing import Any

from hypothesis import strategies as st

from roofcast.data.catalog import load_catalog
from roofcast.data.specs import ModelSpec
from roofcast.serving.deployment import Question
from roofcast.serving.deployment.engine_config import EngineConfig, configure_engine
from roofcast.serving.recommend.answer.parts import Entry, offer_fields, replica_fields
from roofcast.serving.recommend.demand.constraints import Constraints
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.search.configurations import Replica
from tests.builders import a_model
from tests.serving.offer_builders import H100, an_offer

checkpoints = st.text(
    st.characters(exclude_categories=("C", "Z"), include_characters=" "), min_size=1, max_size=60
).filter(lambda name: not name.startswith("-"))
"""Arbitrary names of checkpoints."""


def an_entry(
    accelerator: str = H100,
    tp: int = 2,
    in_flight: float = 64.0,
    replica: Replica | None = None,
    **offer: Any,
) -> Entry:
    """Return an entry of three replicas of `tp` accelerators for any engine."""
    return Entry(
        **offer_fields(an_offer(accelerator=accelerator, **offer)),
        **replica_fields(replica or Replica(accelerator, tp)),
        rank=1,
        users_per_replica=in_flight,
        support="near",
        in_flight_per_replica=in_flight,
        request_rate_per_replica=8.0,
        n_replica=3,
        n_instance=1,
        cost_usd_per_h=55.0,
        cost_usd_per_month=40150.0,
        batch_h=None,
        batch_usd=None,
        cost_usd_per_million_input_token=0.2,
        cost_usd_per_million_output_token=1.0,
        cost_usd_per_million_token=0.5,
        load_per_replica=50.0,
        predictions=(),
        p_limits_met=0.9,
        p_runs=None,
        power_w=3000.0,
        memory_used_byte=3e10,
        memory_usable_byte=1.4e11,
        bottleneck="compute",
        needs_quantised_copy=False,
        nearest=(),
        outside=False,
        outside_columns=(),
        warnings=(),
        also_at=(),
    )


def a_question(
    model: ModelSpec | None = None,
    checkpoint: str = "ours/dense-7b",
    demand: Demand | None = None,
    **constraints: Any,
) -> Question:
    """Return a question about 1,000 input and 200 output tokens, or another demand."""
    for one, many in (("engine", "engines"), ("weight_precision", "weight_precisions")):
        if one in constraints:
            constraints[many] = frozenset({constraints.pop(one)})
    demand = demand or Demand(1000, 200, 150, None, ())
    return Question(model or a_model(), checkpoint, load_catalog().accelerators, demand, Constraints(**constraints))


def an_engine_config(
    engine: str = "vllm", entry: Entry | None = None, question: Question | None = None
) -> EngineConfig:
    """Return the engine configuration of the entry."""
    return configure_engine(engine, entry or an_entry(), question or a_question())
