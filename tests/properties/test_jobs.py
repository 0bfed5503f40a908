"""Properties that answers to training jobs have, over models, accelerators, frameworks and methods."""

from typing import Any

import numpy as np
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.features.jobs.plan_enumeration import PlanChoice, choose_plans
from roofcast.features.jobs.run_table import build_jobs
from roofcast.features.jobs.step.step import throughput_token_per_s
from tests.features.jobs.samples import table_of

CATALOG = load_catalog()
MODELS = ("meta-llama/Llama-3.1-8B", "Qwen/Qwen2.5-32B", "mistralai/Mixtral-8x7B-v0.1", "Qwen/Qwen3-30B-A3B")
ACCELERATORS = ("nvidia-rtx-4090-24gb", "nvidia-a100-sxm-80gb", "nvidia-h100-sxm-80gb", "amd-mi300x-192gb")
TRAINERS = (
    ("transformers", "lora"), ("transformers", "qlora"), ("transformers", "full"), ("deepspeed", "full"),
    ("torchtune", "full"), ("torchtune", "qlora"), ("unsloth", "qlora"), ("torchtitan", "full"),
    ("megatron-lm", "pretrain"), ("nemo", "pretrain"),
)  # fmt: skip
STATED = {"n_micro_batch_sequence": 1.0, "recomputation": "full", "tp": 1.0, "pp": 1.0, "cp": 1.0, "ep": 1.0}
trainers = pytest.mark.parametrize(("framework", "method"), TRAINERS)


def asked(name: str, values: tuple[Any, ...], **cells: Any) -> list[PlanChoice]:
    """Return the choices of questions about all models and accelerators, with each value of a column."""
    pairs = [{"model": model, "accelerator": name} for model in MODELS for name in ACCELERATORS]
    tables = (table_of(*(pair | cells | {name: value} for pair in pairs)) for value in values)
    return [choose_plans(build_jobs(table, CATALOG.models, CATALOG.accelerators)) for table in tables]


def grows(name: str, values: tuple[Any, ...], **cells: Any) -> bool:
    memory = np.array([choice.memory.device for choice in asked(name, values, **cells)])
    return bool((np.diff(memory, axis=0) >= -1e-6 * memory[1:]).all())


@trainers
@pytest.mark.parametrize("sharding", ["ddp", "zero2", "fsdp"])
def test_longer_sequences_and_larger_micro_batches_take_no_less_memory(
    framework: str, method: str, sharding: str
) -> None:
    cells = STATED | {"framework": framework, "method": method, "sharding": sharding, "n_accelerator": 8.0}
    lengths, micro_batches = (512.0, 1024.0, 2048.0, 8192.0, 32768.0), (1.0, 2.0, 4.0, 16.0)
    assert grows("n_token_per_sequence", lengths, **cells)
    cells |= {"n_token_per_sequence": 2048.0, "n_global_batch_sequence": None, "n_gradient_accumulation": 4.0}
    assert grows("n_micro_batch_sequence", micro_batches, **cells)


@trainers
@pytest.mark.parametrize("recomputation", ["none", "full"])
def test_wider_weights_take_no_less_memory(framework: str, method: str, recomputation: str) -> None:
    cells = STATED | {"framework": framework, "method": method, "recomputation": recomputation, "n_accelerator": 1.0}
    precisions = ("int4", "int8", "bf16", "fp32") if "lora" in method else ("bf16", "fp32")
    assert grows("weight_precision", precisions, **cells)


@trainers
@pytest.mark.parametrize("sharding", ["ddp", "zero1", "zero2", "fsdp"])
def test_more_accelerators_of_a_domain_are_not_slower(framework: str, method: str, sharding: str) -> None:
    """Of eight cards without a fabric half are behind another socket, where gathered weights may cost more."""
    cells = STATED | {"framework": framework, "method": method, "sharding": sharding, "n_global_batch_sequence": 64.0}
    choices = asked("n_accelerator", (1.0, 2.0, 4.0, 8.0), **cells)
    rate = np.array([throughput_token_per_s(choice.runs, choice.time) for choice in choices])
    has_fabric = np.tile(
        [not CATALOG.accelerators[name].link.startswith("pcie") for name in ACCELERATORS], len(MODELS)
    )
    assert (np.diff(rate, axis=0)[:, has_fabric] > 0).all()


@trainers
def test_a_blank_plan_is_not_slower_on_more_accelerators_and_no_leaner_on_fewer(framework: str, method: str) -> None:
    cells = {"framework": framework, "method": method, "n_global_batch_sequence": 64.0, "sharding": ""}
    cells |= dict.fromkeys(STATED) | {"recomputation": ""}
    choices = asked("n_accelerator", (1.0, 2.0, 4.0, 8.0), **cells)
    rate = np.array([throughput_token_per_s(choice.runs, choice.time) for choice in choices])
    fits = np.array([choice.fits for choice in choices])
    assert (fits[1:] >= fits[:-1]).all()
    assert (rate[1:] > rate[:-1])[fits[:-1]].all()
