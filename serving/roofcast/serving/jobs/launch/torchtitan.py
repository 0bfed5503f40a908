"""Launch command of torchtitan, which shards by FSDP2, under torchrun."""

from typing import Final, NamedTuple

from roofcast.data.specs import ModelSpec
from roofcast.serving.jobs.job_messages import JobPlanResponse
from roofcast.serving.jobs.launch.shell import (
    LEARNING_RATE,
    LOGIN,
    OUTPUT,
    Arguments,
    command,
    here_document,
    node_variables,
    subshell,
    torchrun,
)
from roofcast.serving.jobs.search.candidates import Hardware, JobDemand

VERSION: Final = "0.3.0"
"""Version whose configurations and arguments the command has: `torchtitan` on PyPI."""

TORCH_VERSION: Final = "2.13.0"
"""Version whose torchrun starts it."""

SHARDINGS: Final = ("fsdp", "hsdp", "ddp")
PRECISIONS: Final = ("bf16", "fp8")
RECOMPUTATION: Final = {"none": "None", "selective": "SelectiveAC.Config()", "full": "FullAC.Config()"}
FILE: Final = "roofcast_job"


class Flavor(NamedTuple):
    """A model of torchtitan: module, name in its registry, and a configuration of another size of the family."""

    module: str
    name: str
    base: str


FLAVORS: Final = {
    ("llama", 16, 2048, 8192, 128256): Flavor("llama3", "1B", "llama3_8b"),
    ("llama", 28, 3072, 8192, 128256): Flavor("llama3", "3B", "llama3_8b"),
    ("llama", 32, 4096, 14336, 128256): Flavor("llama3", "8B", "llama3_8b"),
    ("llama", 80, 8192, 28672, 128256): Flavor("llama3", "70B", "llama3_70b"),
    ("llama", 126, 16384, 53248, 128256): Flavor("llama3", "405B", "llama3_405b"),
    ("qwen3", 28, 1024, 3072, 151936): Flavor("qwen3", "0.6B", "qwen3_14b"),
    ("qwen3", 28, 2048, 6144, 151936): Flavor("qwen3", "1.7B", "qwen3_14b"),
    ("qwen3", 36, 2560, 9728, 151936): Flavor("qwen3", "4B", "qwen3_14b"),
    ("qwen3", 36, 4096, 12288, 151936): Flavor("qwen3", "8B", "qwen3_14b"),
    ("qwen3", 40, 5120, 17408, 151936): Flavor("qwen3", "14B", "qwen3_14b"),
    ("qwen3", 64, 5120, 25600, 151936): Flavor("qwen3", "32B", "qwen3_32b"),
    ("qwen3_moe", 48, 2048, 768, 151936): Flavor("qwen3", "30B-A3B", "qwen3_30b_a3b"),
    ("qwen3_moe", 94, 4096, 1536, 151936): Flavor("qwen3", "235B-A22B", "qwen3_30b_a3b"),
}
"""Models by type, layers, hidden size, width of the MLP or of an expert, and vocabulary: `model_registry` of
``torchtitan/models/llama3`` and ``qwen3``."""


def torchtitan_problem(plan: JobPlanResponse, hardware: Hardware, demand: JobDemand) -> str:
    """Return why torchtitan cannot run a plan; blank if it can.

    References
    ----------
    torchtitan 0.3.0: ``build_mesh`` of ``torchtitan/distributed/parallel_dims.py``, ``torchtitan/trainer.py``.
    """
    if _shape(demand.model) not in FLAVORS:
        return f"starts torchtitan {VERSION}, which has no configuration of the model: it has Llama 3 and Qwen3"
    if plan.pp > 1:
        return "is started without pipeline stages here"
    if plan.compute_precision not in PRECISIONS:
        return f"multiplies in {' or '.join(PRECISIONS)}, not in {plan.compute_precision}"
    if plan.sharding not in SHARDINGS:
        return f"shards as {', '.join(SHARDINGS)}, not as {plan.sharding}"
    return _mesh_problem(plan, hardware, demand)


def _mesh_problem(plan: JobPlanResponse, hardware: Hardware, demand: JobDemand) -> str:
    n_shard = _sharded_replicas(plan, hardware)
    if plan.dp % n_shard:
        return f"cannot shard {plan.dp} replicas in groups of {n_shard}"
    n_mesh = n_shard * plan.cp * plan.tp
    if n_mesh % plan.ep:
        return f"cannot spread experts over {plan.ep} of the {n_mesh} ranks that share a copy of the states"
    divisor = plan.tp * (2 * plan.cp if plan.cp > 1 else 1)
    if demand.n_token % divisor:
        return f"splits sequences in multiples of {divisor} tokens, not {demand.n_token}"
    return ""


def _sharded_replicas(plan: JobPlanResponse, hardware: Hardware) -> int:
    return {"hsdp": min(hardware.n_per_node, plan.dp), "ddp": 1}.get(plan.sharding, plan.dp)


def _shape(model: ModelSpec) -> tuple[str, int, int, int, int]:
    width = model.moe_intermediate_size if model.n_expert else model.intermediate_size
    return (model.model_type, model.n_layer, model.hidden_size, width, model.vocab_size)


def torchtitan_command(plan: JobPlanResponse, hardware: Hardware, demand: JobDemand) -> str:
    """Return the configuration of a job and the command that trains it.

    References
    ----------
    torchtitan 0.3.0: ``torchtitan/config/configs.py`` and ``manager.py``, ``components/checkpointer/base.py``,
    ``hf_datasets/text_datasets.py``.
    """
    flavor = FLAVORS[_shape(demand.model)]
    names = {
        "DATA": "folder of JSON or Parquet files with a column text",
        "CHECKPOINT": "folder of the model, as downloaded from Hugging Face",
        **OUTPUT,
        **LEARNING_RATE,
        **node_variables(hardware),
    }
    head = f"{torchrun(hardware)} -m torchtitan.train --module {FILE} --config job"
    config = here_document(f"{FILE}.py", _config_lines(flavor, plan))
    remarks = (f"pip install torchtitan=={VERSION} torch=={TORCH_VERSION}", LOGIN)
    return subshell(names, config + command(head, _arguments(plan, hardware, demand)), remarks)


def _config_lines(flavor: Flavor, plan: JobPlanResponse) -> list[str]:
    module = f"torchtitan.models.{flavor.module}"
    lines = ["from torchtitan.components.optimizer import default_adamw"]
    is_fp8 = plan.compute_precision == "fp8"
    if is_fp8:
        lines.append("from torchtitan.components.quantization import Float8LinearConverter")
    if plan.recomputation != "none":
        name = RECOMPUTATION[plan.recomputation].partition(".")[0]
        lines.append(f"from torchtitan.distributed.activation_checkpoint import {name}")
    converters = ", converters=[Float8LinearConverter.Config(model_compile_enabled=True)]" if is_fp8 else ""
    return [
        *lines,
        f"from {module} import model_registry",
        f"from {module}.config_registry import {flavor.base}",
        "",
        "",
        "def job():",
        f"    config = {flavor.base}()",
        f'    config.model_spec = model_registry("{flavor.name}"{converters})',
        f"    config.activation_checkpoint = {RECOMPUTATION[plan.recomputation]}",
        "    config.optimizer = default_adamw(lr=$LEARNING_RATE)",
        "    return config",
    ]


def _arguments(plan: JobPlanResponse, hardware: Hardware, demand: JobDemand) -> Arguments:
    shard = _sharded_replicas(plan, hardware)
    yield "hf_assets_path", '"$CHECKPOINT"'
    yield "dump_folder", '"$OUT"'
    yield "dataloader.dataset", "c4_test"  # the loader of a local folder
    yield "dataloader.dataset_path", '"$DATA"'
    yield "training.seq_len", demand.n_token
    yield "training.local_batch_size", f"{plan.n_micro_batch_sequence:g}"
    yield "training.global_batch_size", f"{plan.n_global_batch_sequence:g}"
    yield "training.steps", demand.n_step
    yield "parallelism.data_parallel_shard_degree", shard
    yield "parallelism.data_parallel_replicate_degree", plan.dp // shard
    for name, degree in {"tensor": plan.tp, "pipeline": plan.pp, "context": plan.cp, "expert": plan.ep}.items():
        yield f"parallelism.{name}_parallel_degree", degree  # the base may have others
    if plan.ep > 1:
        yield "training.disable_cuda_graphs", None
    if "parameters" in plan.offload:
        yield "training.enable_cpu_offload", None
    yield "compile.enable", None
    yield "checkpoint.enable", None
    if demand.method != "pretrain":
        yield "checkpoint.initial_load_in_hf", None
    yield "checkpoint.last_save_model_only", None
    yield "checkpoint.last_save_in_hf", None
