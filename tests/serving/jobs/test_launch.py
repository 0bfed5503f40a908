import re
import shlex
import subprocess
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.serving.jobs.job_messages import JobPlanResponse
from roofcast.serving.jobs.launch.launch import launch_commands
from roofcast.serving.jobs.search.candidates import Hardware, JobDemand
from tests.serving.jobs.launch_arguments import ACCELERATE, MEGATRON, TORCHRUN, TORCHTITAN, TRL

TWO_NODES = Hardware("nvidia-h100-sxm-80gb", 8, 2)
MIXTRAL = "mistralai/Mixtral-8x7B-v0.1"
QWEN3_MOE = "Qwen/Qwen3-30B-A3B"
ONE_CARD = Hardware("nvidia-rtx-4090-24gb", 1, 1)
STAGED: dict[str, Any] = {
    "framework": "megatron-lm", "sharding": "zero1", "tp": 2, "pp": 4, "vp": 2, "dp": 2, "sequence_parallel": True,
}  # fmt: skip


def a_plan(framework: str = "torchtitan", **changes: Any) -> JobPlanResponse:
    plan = {
        "framework": framework, "compute_precision": "bf16", "tp": 1, "pp": 1, "vp": 1, "cp": 1, "dp": 16, "ep": 1,
        "sharding": "fsdp", "recomputation": "full", "sequence_parallel": False, "n_micro_batch_sequence": 2.0,
        "n_gradient_accumulation": 4.0, "n_global_batch_sequence": 128.0, "loss": "full", "offload": "none",
    }  # fmt: skip
    return JobPlanResponse(**plan | changes)


def a_demand(method: str = "full", model: str = "meta-llama/Llama-3.1-8B", targets: str = "") -> JobDemand:
    spec = load_catalog().model(model)
    return JobDemand(spec, method, 1e9, 4096, 128, np.inf, np.inf, np.nan, targets, "", ())


def commands(
    plan: JobPlanResponse, demand: JobDemand | None = None, hardware: Hardware = TWO_NODES
) -> dict[str, str]:
    return launch_commands(plan, hardware, demand or a_demand(), "NVIDIA").commands


def problem(plan: JobPlanResponse, demand: JobDemand, vendor: str = "NVIDIA", hardware: Hardware = TWO_NODES) -> str:
    launch = launch_commands(plan, hardware, demand, vendor)
    assert not launch.commands
    return "; ".join(launch.problems.values())


def lines(text: str) -> list[str]:
    return [line.strip(" \\") for line in text.splitlines()]


def names(words: list[str]) -> set[str]:
    return {word.removeprefix("--") for word in words if word.startswith("--")}


def check_names(launcher: str, text: str) -> None:
    """Assert that the parsers of the tools know every argument, and that every variable is set by name first."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith(": "))
    used = set(re.findall(r"\$(\w+)", body))
    assert used == set(re.findall(r'^: "\$\{(\w+):\?', text, re.MULTILINE))
    _, _, last = body.rpartition("\nEND\n")
    words = shlex.split(last.replace("\\\n", " "))
    if launcher == "accelerate":
        config = body[body.index("<<END\n") + 6 : body.index("\nEND\n")]
        assert {line.split(":")[0].strip() for line in config.splitlines()} <= ACCELERATE
        start = words.index("trl.scripts.sft")
        assert names(words[:start]) == {"config_file"}
        assert names(words[start:]) <= TRL
        return
    start = words.index("pretrain_gpt.py" if launcher == "megatron-lm" else "torchtitan.train")
    assert names(words[:start]) <= TORCHRUN
    assert names(words[start:]) <= (MEGATRON if launcher == "megatron-lm" else TORCHTITAN)


@pytest.mark.parametrize("model", ["meta-llama/Llama-3.1-70B", "Qwen/Qwen3-30B-A3B", "Qwen/Qwen2.5-7B-Instruct"])
def test_the_parsers_know_every_argument(model: str) -> None:
    n = 0
    for recomputation, precision in product(("none", "selective", "full"), ("bf16", "fp16", "fp8")):
        shared: dict[str, Any] = {"recomputation": recomputation, "compute_precision": precision}
        ep = 2 if "A3B" in model else 1
        pp = 2 if "7B" in model else 4
        plans = [
            *(a_plan(sharding=sharding, ep=ep, **shared) for sharding in ("fsdp", "hsdp")),
            a_plan(sharding="ddp", **shared),
            a_plan(**STAGED | {"pp": pp, "ep": ep} | shared),
        ]
        for plan, method in product(plans, ("pretrain", "full")):
            for launcher, text in commands(plan, a_demand(method, model)).items():
                check_names(launcher, text)
                n += 1
    assert n >= 20


@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_the_parsers_know_every_argument_of_adapters(method: str) -> None:
    demand = a_demand(method, targets="q k v o gate up down")
    for sharding, precision in product(("fsdp", "hsdp", "ddp"), ("bf16", "fp16")):
        plan = a_plan("transformers", sharding=sharding, compute_precision=precision, offload="activations")
        check_names("accelerate", commands(plan, demand)["accelerate"])


def test_shards_start_with_torchrun_and_accelerate() -> None:
    launch = commands(a_plan())
    assert set(launch) == {"torchrun", "accelerate"}
    titan = lines(launch["torchrun"])
    for expected in (
        "--training.local_batch_size 2", "--training.global_batch_size 128", "--training.steps 1908",
        "--parallelism.data_parallel_shard_degree 16", '--dataloader.dataset_path "$DATA"',
        "--checkpoint.initial_load_in_hf", "from torchtitan.models.llama3.config_registry import llama3_8b",
        'config.model_spec = model_registry("8B")', "config.activation_checkpoint = FullAC.Config()",
    ):  # fmt: skip
        assert expected in titan
    for expected in ("distributed_type: FSDP", "num_processes: 16", "fsdp_activation_checkpointing: true"):
        assert expected in lines(launch["accelerate"])


def test_shards_on_the_host_are_those_of_fsdp() -> None:
    launch = commands(a_plan(offload="optimizer+parameters"))
    assert "--training.enable_cpu_offload" in lines(launch["torchrun"])
    assert "fsdp_offload_params: true" in lines(launch["accelerate"])
    assert "fsdp_offload_params: false" in lines(commands(a_plan())["accelerate"])


def test_hybrid_shards_are_of_one_node() -> None:
    launch = commands(a_plan(sharding="hsdp"))
    assert "--parallelism.data_parallel_shard_degree 8" in lines(launch["torchrun"])
    assert "--parallelism.data_parallel_replicate_degree 2" in lines(launch["torchrun"])
    assert "parallelism_config_dp_replicate_size: 2" in lines(launch["accelerate"])


@pytest.mark.parametrize(
    ("recomputation", "expected"),
    [("full", "--recompute-granularity full"), ("selective", "--recompute-modules layernorm mlp")],
)
def test_megatron_has_model_and_plan(recomputation: str, expected: str) -> None:
    (text,) = commands(a_plan(**STAGED, recomputation=recomputation)).values()
    for part in (
        "--num-layers 32", "--num-query-groups 8", "--tensor-model-parallel-size 2", "--sequence-parallel",
        "--num-layers-per-virtual-pipeline-stage 4", "--micro-batch-size 2", "--global-batch-size 128", expected,
        "--normalization RMSNorm", "--position-embedding-type rope", "--rope-scaling-factor 8",
        "--padded-vocab-size 128256", '--data-path "$DATA"', '--load "$CHECKPOINT"', "--finetune",
        "--tokenizer-model meta-llama/Llama-3.1-8B", "--use-distributed-optimizer", "--lr $LEARNING_RATE",
        "--norm-epsilon $NORM_EPS", "--rotary-base $ROPE_THETA",
    ):  # fmt: skip
        assert part in lines(text)
    pretrained = commands(a_plan(**STAGED), a_demand("pretrain"))["megatron-lm"]
    assert "CHECKPOINT" not in pretrained


@pytest.mark.parametrize(
    ("model", "expected"),
    [("Qwen/Qwen2.5-7B-Instruct", "--add-qkv-bias"), ("Qwen/Qwen3-8B", "--qk-layernorm")],
)
def test_megatron_knows_biases_and_norms(model: str, expected: str) -> None:
    assert expected in lines(commands(a_plan(**STAGED | {"pp": 2}), a_demand(model=model))["megatron-lm"])


def test_quantised_lora_on_one_accelerator_needs_no_shards() -> None:
    plan = a_plan("transformers", dp=1, sharding="ddp", recomputation="none")
    (text,) = commands(plan, a_demand("qlora"), ONE_CARD).values()
    assert "distributed_type: 'NO'" in lines(text)
    assert "fsdp_config" not in text
    for part in (
        "--use_peft", "--lora_r 16", "--lora_target_modules q_proj v_proj", "--load_in_4bit", "--dtype bfloat16",
        '--dataset_name "$DATA"', '--output_dir "$OUT"',
    ):  # fmt: skip
        assert part in lines(text)


def test_versions_login_and_attention_are_stated() -> None:
    adapters = a_plan("transformers", dp=1, sharding="ddp", recomputation="none")
    (text,) = commands(adapters, a_demand("qlora"), ONE_CARD).values()
    first, second, third = text.splitlines()[:3]
    assert (
        first == "# pip install trl==1.16.0 transformers==5.23.0 accelerate==1.15.0 peft==0.21.2 bitsandbytes==0.50.2"
    )
    assert "flash-attn==" in second
    assert "HF_TOKEN" in third
    assert "--attn_implementation flash_attention_2" in lines(text)
    (old,) = commands(adapters, a_demand("lora"), Hardware("nvidia-t4-16gb", 1, 1)).values()
    assert "flash" not in old
    assert {"--attn_implementation sdpa", "--packing_strategy wrapped"} <= set(lines(old))
    assert "# pip install torchtitan==0.3.0 torch==2.13.0" in commands(a_plan())["torchrun"]
    assert "megatron-core==0.16.1" in commands(a_plan(**STAGED))["megatron-lm"]


def test_experts_are_not_split_by_tensor_parallelism() -> None:
    (text,) = commands(a_plan(**STAGED | {"ep": 4}), a_demand(model="mistralai/Mixtral-8x7B-v0.1")).values()
    assert "--expert-tensor-parallel-size 1" in lines(text)
    assert "--moe-token-dispatcher-type alltoall" in lines(text)


@pytest.mark.parametrize(
    ("plan", "demand", "reason"),
    [
        (a_plan(**STAGED), a_demand("lora"), "accelerate trains adapters"),
        (a_plan("transformers"), a_demand("adapter"), "no other adapters"),
        (a_plan("transformers", offload="optimizer"), a_demand("qlora"), "keeps optimizer in the memory of the host"),
        (a_plan("transformers"), a_demand("pretrain"), "trains checkpoints further"),
        (a_plan("transformers", recomputation="selective"), a_demand("lora"), "whole layers or nothing"),
        (a_plan("transformers", ep=2), a_demand("lora", MIXTRAL), "splits no sequences, experts"),
        (a_plan("transformers", compute_precision="fp8"), a_demand("lora"), "not in fp8"),
        (a_plan("transformers", sharding="zero2"), a_demand("lora"), "not as zero2"),
        (a_plan("transformers"), a_demand("lora", MIXTRAL, "gate up"), "experts' projections"),
        (a_plan("transformers"), a_demand("lora", "tiiuae/falcon-7b"), "of type falcon"),
        (a_plan(recomputation="selective"), a_demand(model="Qwen/Qwen2.5-7B-Instruct"), "no configuration of the"),
        (a_plan(pp=2, ep=2), a_demand(), "without pipeline stages"),
        (a_plan(compute_precision="fp16", ep=2), a_demand(), "bf16 or fp8, not in fp16"),
        (a_plan(sharding="zero1", ep=2), a_demand(), "not as zero1"),
        (a_plan(sharding="ddp", ep=2), a_demand(model=QWEN3_MOE), "experts over 2 of the 1 ranks"),
        (a_plan(dp=8, tp=2, ep=32), a_demand(model=QWEN3_MOE), "experts over 32 of the 16 ranks"),
        (a_plan(dp=8, cp=2, tp=3), a_demand(model=QWEN3_MOE), "multiples of 12 tokens, not 4096"),
        (a_plan(**STAGED), a_demand(model="google/gemma-2-9b-it"), "layers of type gemma2"),
        (a_plan(**STAGED | {"sharding": "zero3"}), a_demand(), "not as zero3"),
        (a_plan(**STAGED, compute_precision="fp32"), a_demand(), "not in fp32"),
        (a_plan(**STAGED | {"pp": 5}), a_demand(), "splits 32 layers evenly"),
        (a_plan(**STAGED, n_gradient_accumulation=6), a_demand(), "multiples of 4, not 6"),
        (a_plan(**STAGED, cp=3), a_demand(), "multiples of 6 tokens"),
        (a_plan(**STAGED, compute_precision="fp16"), a_demand(model=MIXTRAL), "grouped experts"),
        (a_plan(**STAGED | {"sequence_parallel": False}), a_demand(model=MIXTRAL), "needs sequence parallelism"),
        (a_plan("maxtext"), a_demand(), "no command is printed"),
    ],
)  # fmt: skip
def test_a_plan_that_a_launcher_cannot_run_has_a_reason(
    plan: JobPlanResponse, demand: JobDemand, reason: str
) -> None:
    assert reason in problem(plan, demand)


def test_hybrid_shards_that_do_not_divide_the_replicas_have_a_reason() -> None:
    hardware = Hardware("nvidia-h100-sxm-80gb", 8, 3)
    assert "12 replicas in groups of 8" in problem(
        a_plan(sharding="hsdp", tp=2, dp=12), a_demand(), hardware=hardware
    )


@pytest.mark.parametrize(
    ("launcher", "plan"),
    [("torchrun", a_plan()), ("accelerate", a_plan("transformers")), ("megatron-lm", a_plan(**STAGED))],
)
def test_a_missing_variable_stops_text_pasted_into_an_interactive_shell(
    launcher: str, plan: JobPlanResponse, tmp_path: Path
) -> None:
    text = commands(plan, a_demand("lora" if launcher == "accelerate" else "full"))[launcher]
    variables = set(re.findall(r"\$\{(\w+):\?", text))
    assert not paste(text, variables - {"OUT"}, tmp_path)
    assert not list(tmp_path.iterdir())
    started = paste(text, variables, tmp_path)
    assert "a folder" in started
    assert not [word for word in started if "$" in word]


def paste(text: str, variables: set[str], folder: Path) -> list[str]:
    """Return the arguments with which an interactive shell starts the launcher, in a folder of its own."""
    stub = 'torchrun() { printf \'%s\\n\' "$@"; }\naccelerate() { torchrun "$@"; }\n'
    shell = ["bash", "--noprofile", "--norc", "-i"]
    env = {"PATH": "/usr/bin:/bin"} | {name: "a folder" if name == "OUT" else "1" for name in variables}
    done = subprocess.run(  # noqa: S603
        shell, input=stub + text, env=env, cwd=folder, capture_output=True, text=True, check=False, timeout=20
    )
    return done.stdout.splitlines()


def test_other_makers_have_no_command() -> None:
    assert "not of Intel" in problem(a_plan(), a_demand(), "Intel")


def test_a_name_of_a_model_is_quoted() -> None:
    demand = a_demand("lora")
    odd = replace(demand, model=demand.model.model_copy(update={"id": "a; rm -rf $HOME"}))
    assert "--model_name_or_path 'a; rm -rf $HOME'" in commands(a_plan("transformers"), odd)["accelerate"]


def test_the_last_stage_has_what_the_others_leave() -> None:
    (text,) = commands(a_plan(**STAGED | {"pp": 5, "vp": 1})).values()
    assert "--decoder-last-pipeline-num-layers 4" in lines(text)
