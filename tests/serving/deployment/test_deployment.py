from __future__ import annotations

import pytest
import yaml

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.serving.demand import Constraints, Demand
from roofcast.serving.deployment import KINDS, Question, checkpoint_of, deployment, deployments
from roofcast.serving.deployment.platforms import platform_of
from roofcast.serving.recommender import recommend
from roofcast.serving.slo import parse_limit
from roofcast.serving.workbench import Workbench
from tests.serving.deployment.builders import a_question, an_entry


def test_an_entry_for_any_engine_has_every_kind() -> None:
    assert tuple(deployments(an_entry(), a_question())) == KINDS


def test_an_entry_for_one_engine_has_its_command_and_manifests_that_run_it() -> None:
    made = deployments(an_entry(), a_question(engine="sglang"))
    assert set(made) == {"sglang", "kubernetes", "kserve"}
    assert all("sglang.launch_server" in text for text in made.values())


def test_what_cannot_be_made_is_left_out_and_says_why_when_asked_for() -> None:
    entry = an_entry("amd-mi300x-192gb")
    assert set(deployments(entry, a_question())) == {"vllm", "sglang", "kubernetes", "kserve"}
    with pytest.raises(InputError, match="trtllm does not run on AMD"):
        deployment("trtllm", entry, a_question())


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="deployment: no 'kubernets' is known; did you mean 'kubernetes'"):
        deployment("kubernets", an_entry(), a_question())
    with pytest.raises(UnknownNameError, match=r"constraints\.engine: no 'tgis' is known"):
        deployments(an_entry(), a_question(engine="tgis"))


def test_every_entry_of_a_real_recommendation_can_be_deployed(bench: Workbench) -> None:
    catalog = load_catalog()
    name = "meta-llama/Llama-3.1-8B"
    model = catalog.model(name)
    demand = Demand(500, 100, 300, None, (parse_limit("itl:p50<=60ms"),))
    bounds = Constraints(engine="vllm")
    result = recommend(bench.in_service.bundle, model, catalog, demand, bounds, n_entry=200)
    question = Question(model, checkpoint_of(name, model, catalog), catalog.accelerators, demand, bounds)
    assert result.entries
    n_made = 0
    for entry in result.entries:
        try:
            platform = platform_of(catalog.accelerators[entry.candidate.accelerator])
        except InputError:
            continue
        made, service = yaml.safe_load_all(deployment("kubernetes", entry, question))
        limits = made["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
        assert limits == {platform.resource: str(entry.candidate.tp)}
        assert made["spec"]["replicas"] == entry.n_replica
        assert service["kind"] == "Service"
        n_made += 1
    assert n_made > len(result.entries) / 2
