import copy
import dataclasses
import shlex
import subprocess
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.data.errors import InputError
from roofcast.data.specs import PRECISIONS
from roofcast.serving.deployment import deployment
from roofcast.serving.deployment.artefacts import command, kserve, kubernetes, options
from roofcast.serving.deployment.engine_config import ENGINES, EngineConfig
from roofcast.serving.deployment.platforms import load_names
from roofcast.serving.recommend.demand.constraints import Speculation
from roofcast.serving.recommend.search.configurations import Replica
from tests.builders import a_model
from tests.effort import n_example
from tests.serving.deployment.builders import a_question, an_engine_config, an_entry, checkpoints

CONFIGS = {engine: an_engine_config(engine) for engine in ENGINES}
TP = {"vllm": "--tensor-parallel-size", "sglang": "--tp-size", "trtllm": "--tp_size"}
degrees = st.sampled_from([1, 2, 4, 8, 16])


def arguments_of(config: EngineConfig) -> list[str]:
    return [word for option in options(config) for word in option]


def command_with(engine: str, **changes: Any) -> str:
    return " ".join(arguments_of(dataclasses.replace(CONFIGS[engine], **changes)))


def test_a_command_leaves_out_defaults_of_the_engine() -> None:
    assert command_with("vllm") == (
        "vllm serve ours/dense-7b --tensor-parallel-size 2 --max-model-len 2400 --max-num-seqs 64 "
        "--gpu-memory-utilization 0.92"
    )
    assert command_with("sglang") == (
        "python -m sglang.launch_server --model-path ours/dense-7b --tp-size 2 --context-length 2400 "
        "--max-running-requests 64"
    )
    assert command_with("trtllm") == (
        "trtllm-serve ours/dense-7b --tp_size 2 --max_seq_len 2400 --max_batch_size 64 "
        "--kv_cache_free_gpu_memory_fraction 0.90"
    )


SPECULATION = {
    (
        "vllm",
        "eagle",
    ): """--speculative-config '{"method": "eagle3", "num_speculative_tokens": 3, "model": "a/head"}'""",
    ("vllm", "draft"): (
        """--speculative-config '{"method": "draft_model", "num_speculative_tokens": 3, "model": "a/head"}'"""
    ),
    ("vllm", "mtp"): """--speculative-config '{"method": "mtp", "num_speculative_tokens": 3}'""",
    ("vllm", "ngram"): """--speculative-config '{"method": "ngram", "num_speculative_tokens": 3}'""",
    ("sglang", "eagle"): (
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path a/head --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
    ),
    ("sglang", "draft"): (
        "--speculative-algorithm STANDALONE --speculative-draft-model-path a/head --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
    ),
    ("sglang", "mtp"): (
        "--speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 4"
    ),
    ("sglang", "ngram"): "--speculative-algorithm NGRAM --speculative-num-draft-tokens 4",
}


@pytest.mark.parametrize(("engine", "kind"), SPECULATION)
def test_speculation_is_an_option_of_each_engine(engine: str, kind: str) -> None:
    replica = Replica("nvidia-h100-sxm-80gb", 2, engine=engine, speculation=Speculation(kind, 3, 0.7))
    config = an_engine_config(engine, an_entry(replica=replica), a_question(draft_model="a/head"))
    assert shlex.join(arguments_of(config)).endswith(SPECULATION[engine, kind])


def test_speculation_without_its_drafts_or_an_option_is_refused() -> None:
    for engine in ("vllm", "sglang"):
        for kind in ("eagle", "draft"):
            config = dataclasses.replace(CONFIGS[engine], speculation=Speculation(kind, 3))
            with pytest.raises(InputError, match=f"constraints.draft_model: must be given for speculation {kind}"):
                options(config)
    with pytest.raises(InputError, match="takes it from a configuration file only, got mtp; admit the engines"):
        options(dataclasses.replace(CONFIGS["trtllm"], speculation=Speculation("mtp", 3)))


def test_a_command_starts_with_the_number_of_replicas() -> None:
    text = command(CONFIGS["vllm"])
    assert text.startswith("# one of 3 replicas, each on 2 x nvidia-h100-sxm-80gb\n# --tensor-parallel-size: ")
    first = next(line for line in text.splitlines() if not line.startswith("#"))
    assert first.startswith("vllm serve ")


@given(checkpoints, st.sampled_from(ENGINES))
def test_a_command_is_quoted_for_the_shell(name: str, engine: str) -> None:
    config = an_engine_config(engine, question=a_question(checkpoint=name))
    assert shlex.split(command(config).replace(" \\\n", " "), comments=True) == arguments_of(config)
    assert name in arguments_of(config)


@pytest.mark.parametrize("name", ["$(touch x)", "a; exit 1", "it's", "`id`", "a b", "*", "# a", "a\\"])
def test_a_shell_passes_the_arguments_unchanged(name: str) -> None:
    config = an_engine_config(question=a_question(checkpoint=name))
    script = f"vllm() {{ printf '%s\\n' \"$@\"; }}\n{command(config)}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)  # noqa: S603, S607
    assert done.stdout.splitlines() == arguments_of(config)[1:]


@given(
    st.sampled_from(ENGINES), st.fixed_dictionaries(dict.fromkeys(("tp", "pp", "dp", "ep"), degrees)), st.booleans()
)
def test_parallel_degrees_are_options_or_refused(engine: str, split: dict[str, Any], is_moe: bool) -> None:
    config = dataclasses.replace(CONFIGS[engine], **split, is_moe=is_moe)
    is_refused = {"vllm": split["ep"] not in (1, split["tp"] * split["dp"]), "trtllm": split["dp"] > 1}
    if is_refused.get(engine):
        with pytest.raises(InputError, match=r"^(ep|dp): "):
            options(config)
        return
    values = dict(option for option in options(config) if len(option) == 2)
    n_tensor = int(values[TP[engine]])
    n_pipeline = int(values.get("--pipeline-parallel-size", values.get("--pp-size", values.get("--pp_size", 1))))
    n_data = int(values.get("--data-parallel-size", values.get("--dp-size", 1)))
    n_attention = n_data if ("--enable-dp-attention",) in options(config) else 1
    assert n_tensor * n_pipeline * n_data // n_attention == split["tp"] * split["pp"] * split["dp"]


def test_expert_parallelism_by_engine() -> None:
    assert "--enable-expert-parallel" in command_with("vllm", tp=2, dp=4, ep=8, is_moe=True)
    assert "--max-num-seqs 64" in command_with("vllm", tp=2, dp=4, ep=8, is_moe=True), "of each rank"
    assert "--max-running-requests 256" in command_with("sglang", tp=2, dp=4, ep=8, is_moe=True), "of all ranks"
    with pytest.raises(InputError, match="ep: vllm spreads experts over all of tp x dp = 8, got 4"):
        command_with("vllm", tp=2, dp=4, ep=4, is_moe=True)
    sglang = command_with("sglang", tp=2, dp=4, ep=8, is_moe=True)
    assert "--tp-size 8 --dp-size 4 --enable-dp-attention --ep-size 8" in sglang
    assert "--tp_size 8 --ep_size 4" in command_with("trtllm", tp=8, ep=4, is_moe=True)
    with pytest.raises(InputError, match="dp: trtllm-serve takes it from a configuration file only, got 2"):
        command_with("trtllm", dp=2)


@pytest.mark.parametrize(
    ("engine", "stored", "precision_wanted", "expected"),
    [
        ("vllm", "bf16", "fp8", "--quantization fp8"),
        ("sglang", "bf16", "fp8", "--quantization fp8"),
        ("vllm", "bf16", "fp16", "--dtype float16"),
        ("sglang", "fp16", "bf16", "--dtype bfloat16"),
        ("vllm", "fp32", "fp32", "--dtype float32"),
    ],
)
def test_weights_are_converted_to_the_predicted_precision(
    engine: str, stored: str, precision_wanted: str, expected: str
) -> None:
    assert expected in command_with(engine, stored_precision=stored, weight_precision=precision_wanted)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("precision", ["bf16", "fp8", "fp4", "int4"])
def test_a_quantised_checkpoint_needs_no_option(engine: str, precision: str) -> None:
    expected = command_with(engine, stored_precision=precision, weight_precision=precision)
    assert "--quantization" not in expected
    assert "--dtype" not in expected


@pytest.mark.parametrize(
    ("engine", "accelerator", "stored", "precision_wanted"),
    [
        ("vllm", "nvidia-h100-sxm-80gb", "bf16", "int4"),
        ("vllm", "nvidia-h100-sxm-80gb", "fp8", "bf16"),
        ("vllm", "intel-gaudi3-128gb", "bf16", "fp8"),
        ("trtllm", "nvidia-h100-sxm-80gb", "bf16", "fp8"),
    ],
)
def test_conversions_that_an_engine_lacks_need_a_copy(
    engine: str, accelerator: str, stored: str, precision_wanted: str
) -> None:
    question = a_question(a_model(weight_precision=stored), weight_precision=precision_wanted)
    text = command(an_engine_config(engine, an_entry(accelerator), question))
    copy = f"replace-me/{question.checkpoint.rpartition('/')[2]}-{precision_wanted}"
    assert f"# needs a copy of {question.checkpoint} in {precision_wanted}; {copy} is a placeholder" in text
    assert text.count(copy) == 2
    assert "--quantization" not in text


@pytest.mark.parametrize(
    ("engine", "precision_wanted", "expected"),
    [
        ("vllm", "fp8", "--kv-cache-dtype fp8 "),
        ("sglang", "fp8", "--kv-cache-dtype fp8_e4m3 "),
        ("trtllm", "fp8", "--kv_cache_dtype fp8 "),
        ("vllm", "int8", "--kv-cache-dtype int8_per_token_head "),
        ("trtllm", "fp4", "--kv_cache_dtype nvfp4 "),
    ],
)
def test_the_kv_cache_has_the_predicted_precision(engine: str, precision_wanted: str, expected: str) -> None:
    assert expected in command_with(engine, kv_precision=precision_wanted)


def test_gaudi_has_its_own_option_for_an_fp8_cache() -> None:
    config = an_engine_config(entry=an_entry("intel-gaudi3-128gb"), question=a_question(kv_precision="fp8"))
    assert ("--kv-cache-dtype", "fp8_inc") in options(config)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_each_cache_precision_is_an_option_a_default_or_refused(engine: str, precision: str) -> None:
    if precision in ("bf16", "fp16"):
        assert command_with(engine, kv_precision=precision) == command_with(engine)
    elif precision in load_names()["caches"][engine] or (engine, precision) == ("vllm", "fp8"):
        assert "dtype" in command_with(engine, kv_precision=precision)
    else:
        with pytest.raises(InputError, match=rf"constraints\.kv_precision: {engine} keeps its cache in bf16, "):
            command_with(engine, kv_precision=precision)


KUBERNETES = "1.37"

KSERVE_FIELDS = {"minReplicas", "maxReplicas", "deploymentStrategy"}
"""Fields of a predictor beside those of a pod: KServe 0.21, `ComponentExtensionSpec` in its v1beta1 API."""


def check_kubernetes(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def check_kserve(manifest: dict[str, Any]) -> None:
    """Check the fields that KServe adds, and the rest as a pod."""
    assert set(manifest) == {"apiVersion", "kind", "metadata", "spec"}
    assert (manifest["apiVersion"], manifest["kind"]) == ("serving.kserve.io/v1beta1", "InferenceService")
    assert set(manifest["spec"]) == {"predictor"}
    predictor = manifest["spec"]["predictor"]
    assert 1 <= predictor["minReplicas"] <= predictor["maxReplicas"]
    assert predictor["containers"][0]["name"] == "kserve-container"
    assert predictor["deploymentStrategy"] == kubernetes(an_engine_config())[0]["spec"]["strategy"]
    pod = {name: value for name, value in predictor.items() if name not in KSERVE_FIELDS}
    check_kubernetes({"apiVersion": "v1", "kind": "Pod", "metadata": manifest["metadata"], "spec": pod})


def container_of(config: EngineConfig) -> dict[str, Any]:
    container: dict[str, Any] = kubernetes(config)[0]["spec"]["template"]["spec"]["containers"][0]
    return container


@pytest.mark.parametrize("engine", ENGINES)
def test_manifests_conform_to_their_schemas(engine: str) -> None:
    for manifest in kubernetes(an_engine_config(engine)):
        check_kubernetes(manifest)
    check_kserve(kserve(an_engine_config(engine))[0])


def test_the_schemas_refuse_invalid_manifests() -> None:
    invalid = copy.deepcopy(kubernetes(an_engine_config())[0])
    invalid["spec"]["replica"] = invalid["spec"].pop("replicas")
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        check_kubernetes(invalid)
    invalid = copy.deepcopy(kserve(an_engine_config())[0])
    invalid["spec"]["predictor"]["replicas"] = 3
    with pytest.raises(kubernetes_validate.ValidationError, match="replicas"):
        check_kserve(invalid)


@settings(max_examples=n_example(20))
@given(checkpoints)
def test_manifests_with_any_checkpoint_name_survive_yaml(name: str) -> None:
    question = a_question(checkpoint=name)
    for kind, build in (("kubernetes", kubernetes), ("kserve", kserve)):
        text = deployment(kind, an_entry(), question)
        assert list(yaml.safe_load_all(text)) == build(an_engine_config(question=question))
        assert "&id" not in text


def test_a_service_selects_the_pods_of_its_deployment() -> None:
    manifest, service = kubernetes(an_engine_config())
    labels = manifest["spec"]["template"]["metadata"]["labels"]
    assert manifest["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert service["spec"]["ports"][0]["targetPort"] in {
        port["name"] for port in container_of(an_engine_config())["ports"]
    }
    assert manifest["metadata"]["name"] == "dense-7b"


def test_replicas_and_accelerators_are_those_of_the_entry() -> None:
    config = an_engine_config()
    assert kubernetes(config)[0]["spec"]["replicas"] == 3
    assert kserve(config)[0]["spec"]["predictor"]["maxReplicas"] == 3
    assert container_of(config)["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    trainium = an_engine_config(entry=an_entry("aws-trainium2", tp=2))
    assert container_of(trainium)["resources"]["limits"] == {"aws.amazon.com/neuron": "2"}


def test_a_container_listens_on_all_interfaces() -> None:
    config = an_engine_config("sglang", question=a_question(checkpoint="ours/$(HF_TOKEN)"))
    command = container_of(config)["command"]
    assert command[-4:] == ["--host", "0.0.0.0", "--port", "8000"]  # noqa: S104
    assert "ours/$$(HF_TOKEN)" in command, "kubernetes would substitute the token"
    assert len(command) == 4 + sum(len(option) for option in options(config))


def test_manifests_hold_no_secret() -> None:
    token = next(v for v in container_of(an_engine_config())["env"] if v["name"] == "HF_TOKEN")
    assert set(token) == {"name", "valueFrom"}


@pytest.mark.parametrize(
    ("changes", "selector"),
    [
        ({}, {"node.kubernetes.io/instance-type": "p5.48xlarge"}),
        ({"provider": "lambda"}, {"accelerator": "nvidia-h100-sxm-80gb"}),
        ({"instance_type": "8 x H100"}, {"accelerator": "nvidia-h100-sxm-80gb"}),
        (
            {"accelerator": "google-tpu-v6e", "provider": "gcp"},
            {
                "cloud.google.com/gke-tpu-accelerator": "replace-me",
                "cloud.google.com/gke-tpu-topology": "replace-me",
            },
        ),
    ],
)
def test_pods_select_nodes_with_the_accelerator(changes: dict[str, Any], selector: dict[str, str]) -> None:
    manifest = kubernetes(an_engine_config(entry=an_entry(**changes)))[0]
    assert manifest["spec"]["template"]["spec"]["nodeSelector"] == selector
    check_kubernetes(manifest)
