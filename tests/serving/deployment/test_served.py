from __future__ import annotations

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.serving.deployment.platforms import platform_of
from roofcast.serving.deployment.served import checkpoint_of
from tests.builders import a_model, an_accelerator
from tests.serving.deployment.builders import a_question, a_served, an_entry


def test_requests_may_be_twice_the_mean_within_the_model() -> None:
    assert a_served().n_token == 2400
    assert a_served(question=a_question(a_model(max_context_token=2048))).n_token == 2048


def test_no_more_requests_run_than_meet_the_limits() -> None:
    assert a_served(entry=an_entry(users=45.2)).n_sequence == 46


def test_an_engine_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(UnknownNameError, match=r"constraints\.engines: no 'tgis' is known"):
        a_served("vllm", question=a_question(engine="tgis"))
    with pytest.raises(InputError, match="the forecast is for sglang, not for vllm"):
        a_served("vllm", question=a_question(engine="sglang"))


def test_an_engine_runs_only_where_it_can() -> None:
    with pytest.raises(InputError, match="trtllm does not run on AMD Instinct MI300X; vllm or sglang does"):
        a_served("trtllm", entry=an_entry("amd-mi300x-192gb"))


def test_a_part_of_several_devices_splits_the_model_further() -> None:
    served = a_served(entry=an_entry("aws-trainium2", tp=2))
    assert (served.tp, served.n_accelerator) == (8, 2)
    with pytest.raises(InputError, match="Trainium2 is 4 devices to vllm; tp: must divide"):
        a_served(entry=an_entry("aws-trainium2", tp=1), question=a_question(a_model(n_head=6, n_kv_head=6)))


def test_sglang_gets_the_memory_of_the_forecast_only_where_the_forecast_is_of_sglang() -> None:
    assert a_served("sglang").memory_ratio is None
    assert a_served("sglang", question=a_question(engine="sglang")).memory_ratio == 0.84
    assert (a_served("vllm").memory_ratio, a_served("trtllm").memory_ratio) == (0.9, 0.9)


def test_weights_are_where_the_name_says() -> None:
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
def test_parts_that_are_not_known_well_enough_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="deployment: it is not known how engines and clusters see"):
        platform_of(load_catalog().accelerator(name))
    with pytest.raises(InputError, match="see ours Ours 80 GB"):
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
def test_each_vendor_has_its_resource(name: str, resource: str) -> None:
    assert platform_of(load_catalog().accelerator(name)).resource == resource
