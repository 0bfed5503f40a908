import numpy as np
import pytest

from roofcast.features.jobs.frameworks import framework_family
from roofcast.features.jobs.offloads import OFFLOADS
from roofcast.features.jobs.plan_enumeration import (
    MAX_MISSING_LAYER,
    USABLE_RATIO,
    choose_plans,
    enumerate_plans,
    join_plans,
)
from roofcast.features.jobs.step.job_memory import estimate_memory
from roofcast.features.jobs.step.step import estimate_training, throughput_token_per_s
from tests.features.jobs.samples import jobs_of

UNKNOWN = {"tp": None, "pp": None, "cp": None, "n_micro_batch_sequence": None, "recomputation": ""}


def test_plans_use_all_accelerators_and_the_whole_batch() -> None:
    jobs = jobs_of({**UNKNOWN, "n_accelerator": 64})
    index, plan = enumerate_plans(jobs)
    assert len(index) > 100
    assert (plan.tp * plan.pp * plan.cp * plan.dp == 64).all()
    assert plan.micro_batch * plan.n_micro_batch * plan.dp == pytest.approx(np.full(len(index), 64.0))


def test_what_is_stated_is_kept() -> None:
    _, plan = enumerate_plans(jobs_of({**UNKNOWN, "tp": 4, "pp": 2, "n_accelerator": 64}))
    assert set(plan.tp) == {4.0}
    assert set(plan.pp) == {2.0}


def test_the_fastest_plan_that_fits_is_chosen() -> None:
    jobs = jobs_of(
        {**UNKNOWN, "n_accelerator": 16}, {**UNKNOWN, "n_accelerator": 32, "model": "meta-llama/Llama-2-70b-hf"}
    )
    choice = choose_plans(jobs)
    index, plan = enumerate_plans(jobs)
    runs = join_plans(jobs, index, plan)
    rate = throughput_token_per_s(runs, estimate_training(runs))
    fits = estimate_memory(runs).device <= USABLE_RATIO * runs.hardware.memory_byte
    for i in range(2):
        best = throughput_token_per_s(choice.runs, choice.time)[i]
        assert choice.fits[i]
        assert best == pytest.approx(rate[(index == i) & fits].max())
        assert choice.n_plan[i] == (index == i).sum()


def test_the_plan_of_least_memory_if_none_fits() -> None:
    jobs = jobs_of({**UNKNOWN, "n_accelerator": 1, "model": "meta-llama/Llama-2-70b-hf"})
    choice = choose_plans(jobs)
    assert not choice.fits[0]
    assert choice.runs.plan.recomputation[0] == 2
    assert choice.runs.plan.micro_batch[0] == 1


def test_experts_and_long_sequences_widen_the_search() -> None:
    jobs = jobs_of(
        {**UNKNOWN, "n_accelerator": 64, "model": "mistralai/Mixtral-8x7B-v0.1"},
        {**UNKNOWN, "n_accelerator": 64, "n_token_per_sequence": 65536},
    )
    index, plan = enumerate_plans(jobs)
    assert set(plan.ep[index == 0]) == {1, 2, 4, 8}
    assert set(plan.cp[index == 1]) == {1, 2, 4, 8}
    assert set(plan.ep[index == 1]) == {1}


def test_enumerated_plans_are_those_that_megatron_starts() -> None:
    free = {**UNKNOWN, "n_accelerator": 64, "n_global_batch_sequence": 128}
    jobs = jobs_of({**free, "model": "meta-llama/Llama-3.1-8B"}, {**free, "model": "deepseek-ai/DeepSeek-V3"})
    index, plan = enumerate_plans(jobs)
    missing = -jobs.model.n_layer[index] % (plan.pp * plan.vp)
    assert missing.max() == MAX_MISSING_LAYER
    assert (jobs.model.n_kv_head[index] % plan.tp == 0).all()
    chunked = plan.vp > 1
    assert chunked.any()
    assert (plan.n_micro_batch[chunked] % plan.pp[chunked] == 0).all()


def test_chunks_of_an_interleaved_pipeline_divide_its_stages() -> None:
    """GPT of 105 layers on 35 stages: three layers each."""
    run = {"model": "nvidia/mt-nlg-530b", "n_accelerator": 280, "tp": 8, "pp": 35, "n_global_batch_sequence": 280}
    jobs = jobs_of({**run, "pipeline_schedule": "interleaved"}, {**run, "pipeline_schedule": "1f1b"})
    index, plan = enumerate_plans(jobs)
    assert set(plan.vp[index == 0]) == {1, 3}
    assert set(plan.vp[index == 1]) == {1}


FREE = {**UNKNOWN, "framework": "transformers", "sharding": "", "n_accelerator": 8, "n_global_batch_sequence": None}
LARGE = {"model": "meta-llama/Llama-3.1-70B"}
SMALL = {"n_accelerator": 1, "model": "meta-llama/Llama-3.1-8B"}


@pytest.mark.parametrize(
    ("job", "zero_stage", "loss", "on_host"),
    [
        ({"method": "lora", "model": "meta-llama/Llama-3.1-8B"}, 0, 1.0, ""),
        ({"method": "lora"} | LARGE, 3, 1.0, ""),
        ({"method": "full"} | LARGE, 3, 0.125, "optimizer"),
        ({"method": "full", "framework": "torchtitan"} | LARGE, 3, 1.0, "optimizer parameter"),
        ({"method": "full"} | SMALL, 0, 0.125, "optimizer"),
        ({"method": "full", "accelerator": "nvidia-rtx-5090-32gb"} | SMALL, 2, 0.125, "optimizer"),
        ({"method": "full", "offload": "none"} | LARGE, 3, 1.0, ""),
        ({"method": "full", "framework": "nanogpt"} | LARGE, 0, 1.0, ""),
        ({"method": "lora", "sharding": "ddp", "offload": "none"} | LARGE, 0, 1.0, ""),
        ({"method": "full", "offload": "parameters"} | LARGE, 3, 0.125, "optimizer parameter"),
    ],
)
def test_blanks_are_as_lean_as_the_memory_asks(
    job: dict[str, object], zero_stage: float, loss: float, on_host: str
) -> None:
    plan = choose_plans(jobs_of({**FREE, **job}, has_offload=True)).runs.plan
    held = [name for name in ("optimizer", "parameter", "activation") if getattr(plan, f"offload_{name}")[0]]
    assert (plan.zero_stage[0], plan.logit_share[0], " ".join(held)) == (zero_stage, loss, on_host)


def test_a_plan_beyond_the_hosts_memory_does_not_fit() -> None:
    """AdamW of 70B parameters in 16 bits with a copy in 32, and their gradients: 14 bytes each, 123 GB a rank."""
    job = {**FREE, **LARGE, "method": "full", "sharding": "zero3", "offload": "optimizer"}
    small, large = (choose_plans(jobs_of(job | {"host_memory_byte": byte})) for byte in (1e12, 1.1e12))
    assert not small.fits[0]
    assert large.fits[0]
    assert large.memory.host[0] == pytest.approx(14 * 70.55e9 / 8, rel=0.01)


@pytest.mark.parametrize("framework", ["transformers", "torchtune", "torchtitan", "deepspeed", "unsloth", "nanogpt"])
@pytest.mark.parametrize("n", [1, 8])
@pytest.mark.parametrize("method", ["full", "qlora"])
def test_the_leanest_plan_is_the_leanest(framework: str, n: int, method: str) -> None:
    """Where nothing fits, no setting that the framework runs needs less memory than the plan that is named."""
    job = {**FREE, "framework": framework, "method": method, "n_accelerator": n,
           "model": "meta-llama/Llama-3.1-405B", "accelerator": "nvidia-rtx-4090-24gb"}  # fmt: skip
    choice = choose_plans(jobs_of(job, has_offload=True))
    assert not choice.fits[0]
    stated = [
        job | {"sharding": row.sharding, "offload": row.offload, "loss": loss}
        for row in OFFLOADS[framework_family(framework)]
        if row.accelerators != ("several" if n == 1 else "one")
        for loss in ("", row.loss)
    ]
    others = [job, *stated]
    least = min(choose_plans(jobs_of(other)).memory.device[0] for other in others)
    assert choice.memory.device[0] == pytest.approx(least)
