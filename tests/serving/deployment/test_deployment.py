import pytest
import yaml

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.serving.composition import Service
from roofcast.serving.deployment import KINDS, Question, checkpoint_of, deployment, deployments
from roofcast.serving.deployment.platforms import platform_of
from roofcast.serving.recommend.demand.constraints import Constraints
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.demand.slo import parse_limit
from roofcast.serving.recommend.recommendation import recommend
from roofcast.serving.recommend.search.configurations import Replica
from tests.builders import a_model
from tests.serving.deployment.builders import a_question, an_entry


def test_an_entry_for_any_engine_has_all_kinds_of_deployment() -> None:
    assert tuple(deployments(an_entry(), a_question())) == KINDS


def test_an_entry_for_one_engine_has_its_command_and_manifests() -> None:
    texts = deployments(an_entry(), a_question(engine="sglang"))
    assert set(texts) == {"sglang", "kubernetes", "kserve"}
    assert all("sglang.launch_server" in text for text in texts.values())


def test_artefacts_say_what_arguments_are_for_and_what_to_fill_in() -> None:
    texts = deployments(an_entry(), a_question(engine="vllm"))
    for text in texts.values():
        assert (
            "# --max-num-seqs: most requests in flight: those within the limits, with room for random arrivals"
            in text
        )
    assert "# to fill in" not in texts["vllm"]
    for kind in ("kubernetes", "kserve"):
        comments = " ".join(line.removeprefix("#").strip() for line in texts[kind].splitlines() if line[:1] == "#")
        for part in ("namespace", "create secret generic huggingface", "nodeSelector", "persistent volume claim"):
            assert part in comments
    assert "replace `replace-me`" in deployment(
        "kubernetes", an_entry("amd-mi300x-192gb"), a_question(engine="sglang")
    )


def test_an_impossible_deployment_is_left_out_and_refused_with_the_reason() -> None:
    entry = an_entry("amd-mi300x-192gb")
    assert set(deployments(entry, a_question())) == {"vllm", "sglang", "kubernetes", "kserve"}
    with pytest.raises(InputError, match="trtllm does not run on AMD"):
        deployment("trtllm", entry, a_question())


def test_a_deployment_has_the_engine_splits_and_precision_of_the_entry() -> None:
    replica = Replica("nvidia-h100-sxm-80gb", tp=2, pp=2, engine="sglang", weight_precision="fp8")
    texts = deployments(an_entry(replica=replica), a_question())
    assert set(texts) == {"sglang", "kubernetes", "kserve"}
    for option in ("--tp-size 2", "--pp-size 2", "--quantization fp8"):
        assert option in texts["sglang"]
    limits = next(yaml.safe_load_all(texts["kubernetes"]))["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert limits["limits"] == {"nvidia.com/gpu": "4"}
    with pytest.raises(InputError, match="the prediction is for sglang, not for vllm"):
        deployment("vllm", an_entry(replica=replica), a_question())


def test_a_deployment_has_the_data_and_expert_parallelism_of_the_entry() -> None:
    replica = Replica("nvidia-h100-sxm-80gb", tp=2, dp=4, ep=8, engine="vllm", weight_precision="bf16")
    text = deployment(
        "vllm",
        an_entry(replica=replica),
        a_question(a_model(n_expert=8, n_expert_per_token=2, moe_intermediate_size=1024)),
    )
    for option in ("--tensor-parallel-size 2", "--data-parallel-size 4", "--enable-expert-parallel"):
        assert option in text


def test_a_replica_that_spans_nodes_has_no_deployment() -> None:
    replica = Replica("nvidia-h100-sxm-80gb", tp=8, pp=2, engine="vllm", weight_precision="bf16")
    with pytest.raises(InputError, match="a replica of 16 spans nodes"):
        deployment("vllm", an_entry(replica=replica), a_question())


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="deployment: no 'kubernets' is known; did you mean 'kubernetes'"):
        deployment("kubernets", an_entry(), a_question())
    with pytest.raises(InputError, match="deployment: there are no artefacts for TGIS"):
        deployments(an_entry(), a_question(engine="tgis"))


def test_every_entry_of_a_real_recommendation_can_be_deployed(service: Service) -> None:
    catalog = load_catalog()
    name = "meta-llama/Llama-3.1-8B"
    model = catalog.model(name)
    demand = Demand(500, 100, 300, None, (parse_limit("itl:p50<=60ms"),))
    bounds = Constraints(engines=frozenset({"vllm"}))
    result = recommend(service.active_model.bundle, model, catalog, demand, bounds, n_entry=200)
    question = Question(model, checkpoint_of(name, model, catalog), catalog.accelerators, demand, bounds)
    assert result.entries
    n_written = 0
    for entry in result.entries:
        try:
            platform = platform_of(catalog.accelerators[entry.replica.accelerator])
        except InputError:
            continue
        texts, balancer = yaml.safe_load_all(deployment("kubernetes", entry, question))
        limits = texts["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
        assert limits == {platform.resource: str(entry.replica.n_accelerator)}
        assert texts["spec"]["replicas"] == entry.n_replica
        assert balancer["kind"] == "Service"
        n_written += 1
    assert n_written > len(result.entries) / 2
