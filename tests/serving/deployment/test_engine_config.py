import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.serving.deployment import deployment
from roofcast.serving.deployment.artefacts import kubernetes
from roofcast.serving.deployment.engine_config import checkpoint_of, longest_request
from roofcast.serving.deployment.platforms import platform_of
from roofcast.serving.recommend.api.request import WorkloadRequest
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.demand.presets import Lengths, lengths_from_percentiles
from roofcast.serving.recommend.search.configurations import Replica
from tests.builders import a_model, an_accelerator
from tests.serving.deployment.builders import a_question, an_engine_config, an_entry
from tests.serving.offer_builders import H100

VARIATIONS = st.just(0.0) | st.floats(0.01, 3)


def test_the_longest_request_is_twice_the_mean_up_to_the_context() -> None:
    assert an_engine_config().n_token == 2400
    assert an_engine_config(question=a_question(a_model(max_context_token=2048))).n_token == 2048


def test_the_longest_request_covers_the_percentiles_of_prompts() -> None:
    fields = {"n_input_token": {"p50": 300, "p95": 1200}, "n_output_token": 150, "users": 20}
    config = an_engine_config(question=a_question(demand=WorkloadRequest.model_validate(fields).demand(())))
    prompt = lengths_from_percentiles({"p50": 300, "p95": 1200})
    assert config.n_token == math.ceil(prompt.percentile("p99.9") + 2 * 150) > 1200 + 150
    assert config.refused_ratio == 0


def test_the_longest_request_covers_the_variation_of_answers() -> None:
    demand = WorkloadRequest(preset="rag", users=20).demand(())
    answer = Lengths(290, 0.70).percentile("p99.9")
    assert an_engine_config(question=a_question(demand=demand)).n_token == math.ceil(2 * 3050 + answer)


@given(st.floats(10, 1e5), VARIATIONS, st.floats(1, 1e4), VARIATIONS)
def test_at_most_one_request_in_a_thousand_is_longer(n_in: float, v_in: float, n_out: float, v_out: float) -> None:
    demand = Demand(n_in, n_out, 8, None, (), length_variation=v_out, input_variation=v_in)
    prompt, answer = demand.lengths
    assert prompt.share_above_with(answer, longest_request(demand)) <= 0.001 * (1 + 1e-6)


def test_the_share_of_requests_beyond_the_context_is_reported() -> None:
    fields = {"n_input_token": {"p50": 300, "p95": 1200}, "n_output_token": 150, "users": 20}
    demand = WorkloadRequest.model_validate(fields).demand(())
    question = a_question(a_model(max_context_token=1350), demand=demand)
    config = an_engine_config(question=question)
    assert config.n_token == 1350
    assert config.refused_ratio == pytest.approx(0.05, abs=1e-6)
    remark = "# 5 % of the requests are longer than 1350 tokens, the context of the model, and are refused\n"
    assert f"\n{remark}# --tensor-parallel-size: " in deployment("vllm", an_entry(), question)
    manifests = deployment("kubernetes", an_entry(), question)
    assert manifests.startswith(remark)
    assert list(yaml.safe_load_all(manifests)) == kubernetes(config)
    assert an_engine_config(question=a_question(a_model(max_context_token=2048))).refused_ratio == 0, (
        "the share is unknown without percentiles"
    )


def test_the_number_of_sequences_is_the_requests_in_flight_on_a_rank_within_the_limits() -> None:
    assert an_engine_config(entry=an_entry(in_flight=45.2)).n_sequence == 46
    ranks = an_entry(in_flight=994.0, replica=Replica(H100, dp=2))
    assert an_engine_config(entry=ranks).n_sequence == 497
    fixed = a_question(server_settings={"max_num_seqs": 64.0})
    assert an_engine_config(entry=ranks, question=fixed).n_sequence == 64, "the limit that is asked for"


@pytest.mark.parametrize(
    "load",
    [{"users": None, "request_rate_per_s": 5.0}, {"users": 900, "request_rate_per_s": None, "think_time_s": 9}],
)
@pytest.mark.parametrize(("mean", "n"), [(49.0, 77), (0.25, 3)])
def test_the_number_of_sequences_exceeds_a_mean_in_flight(load: dict[str, Any], mean: float, n: int) -> None:
    demand = Demand(n_input_token=1000, n_output_token=200, limits=(), **load)
    config = an_engine_config(entry=an_entry(in_flight=mean), question=a_question(demand=demand))
    assert config.n_sequence == n


def test_an_unknown_or_different_engine_is_refused() -> None:
    with pytest.raises(InputError, match=r"deployment: there are no artefacts for llama\.cpp; name one of vllm"):
        an_engine_config("vllm", question=a_question(engine="llama.cpp"))
    with pytest.raises(InputError, match="the prediction is for sglang, not for vllm"):
        an_engine_config("vllm", question=a_question(engine="sglang"))


def test_an_engine_is_refused_on_an_accelerator_it_does_not_support() -> None:
    with pytest.raises(
        InputError, match=r"trtllm does not run on AMD Instinct MI300X: .*nearest that runs: vllm or sglang"
    ):
        an_engine_config("trtllm", entry=an_entry("amd-mi300x-192gb"))


def test_an_accelerator_of_several_devices_multiplies_tensor_parallelism() -> None:
    config = an_engine_config(entry=an_entry("aws-trainium2", tp=2))
    assert (config.tp, config.n_accelerator) == (8, 2)
    with pytest.raises(InputError, match="Trainium2 is 4 devices to vllm; tp: must divide"):
        an_engine_config(entry=an_entry("aws-trainium2", tp=1), question=a_question(a_model(n_head=6, n_kv_head=6)))


def test_sglang_has_a_memory_ratio_only_if_the_prediction_is_for_sglang() -> None:
    assert an_engine_config("sglang").memory_ratio is None
    assert an_engine_config("sglang", question=a_question(engine="sglang")).memory_ratio == 0.83
    assert (an_engine_config("vllm").memory_ratio, an_engine_config("trtllm").memory_ratio) == (0.92, 0.9)


def test_the_checkpoint_is_that_of_the_name() -> None:
    catalog = load_catalog()
    copy = "amd/DeepSeek-R1-0528-MXFP4-Preview"
    assert checkpoint_of(copy, catalog.model(copy), catalog) == copy
    assert checkpoint_of("deepseek-ai/deepseek-v3", catalog.model("deepseek-ai/deepseek-v3"), catalog) == (
        "deepseek-ai/DeepSeek-V3"
    )
    assert checkpoint_of("my-14b", a_model(id="my-14b"), catalog) == "my-14b"


@pytest.mark.parametrize(
    "name", ["amd-epyc-4th-gen-genoa", "amd-mi250-128gb", "aws-graviton4", "aws-inferentia2", "intel-max-1550-128gb"]
)
def test_accelerators_without_a_platform_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="deployment: no platform is known for"):
        platform_of(load_catalog().accelerator(name))
    with pytest.raises(InputError, match="no platform is known for ours Ours 80 GB"):
        platform_of(an_accelerator())


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("nvidia-b200-sxm-180gb", "nvidia.com/gpu"),
        ("amd-mi355x-288gb", "amd.com/gpu"),
        ("google-tpu-v6e", "google.com/tpu"),
        ("aws-trainium2", "aws.amazon.com/neuron"),
        ("intel-gaudi3-128gb", "habana.ai/gaudi"),
        ("intel-arc-pro-b60-24gb", "gpu.intel.com/xe"),
    ],
)
def test_each_vendor_has_a_kubernetes_resource(name: str, resource: str) -> None:
    assert platform_of(load_catalog().accelerator(name)).resource == resource
