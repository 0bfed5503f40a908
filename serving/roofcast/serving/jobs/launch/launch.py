"""Launch commands of a plan, and why launchers do not run it."""

from collections.abc import Callable
from typing import Final, NamedTuple

from roofcast.features.jobs.run_table import FROZEN_METHODS
from roofcast.serving.jobs.job_messages import JobPlanResponse
from roofcast.serving.jobs.launch.megatron import megatron_command, megatron_problem
from roofcast.serving.jobs.launch.torchtitan import torchtitan_command, torchtitan_problem
from roofcast.serving.jobs.launch.trl import trl_command, trl_problem
from roofcast.serving.jobs.rows import ADAPTERS, FSDP, MEGATRON
from roofcast.serving.jobs.search.candidates import Hardware, JobDemand

VENDORS: Final = ("NVIDIA", "AMD")
"""Makers of accelerators that the launchers run on."""


class Launcher(NamedTuple):
    """A launcher: its command, and why it cannot run a plan; blank if it can."""

    command: Callable[[JobPlanResponse, Hardware, JobDemand], str]
    problem: Callable[[JobPlanResponse, Hardware, JobDemand], str]


LAUNCHERS: Final = {
    "torchrun": Launcher(torchtitan_command, torchtitan_problem),
    "accelerate": Launcher(trl_command, trl_problem),
    "megatron-lm": Launcher(megatron_command, megatron_problem),
}
_OF_FSDP: Final = ("none", "parameters", "optimizer+parameters")
OFFLOADS: Final = {"torchrun": _OF_FSDP, "accelerate": (*_OF_FSDP, "activations")}
"""What a command may leave to the memory of the host, by launcher, nothing of the others: the offload of FSDP takes
weights, gradients and optimizer along."""

OF_FRAMEWORK: Final = {FSDP: ("torchrun", "accelerate"), ADAPTERS: ("accelerate",), MEGATRON: ("megatron-lm",)}
"""Launchers of the frameworks whose conventions a plan follows."""


class Launch(NamedTuple):
    """Commands by launcher, to be run on each node, and reasons of the launchers that cannot run the plan."""

    commands: dict[str, str]
    problems: dict[str, str]


def launch_commands(plan: JobPlanResponse, hardware: Hardware, demand: JobDemand, vendor: str) -> Launch:
    """Return the launch commands of a plan by launcher.

    A command starts once the variables that its first lines name are set, such as DATA, OUT and LEARNING_RATE.
    """
    names = OF_FRAMEWORK.get(plan.framework)
    if names is None:
        return Launch({}, {plan.framework: "no command is printed for this framework"})
    launch = Launch({}, {})
    for name in names:
        if problem := _problem(name, plan, hardware, demand, vendor):
            launch.problems[name] = problem
        else:
            launch.commands[name] = LAUNCHERS[name].command(plan, hardware, demand)
    return launch


def _problem(name: str, plan: JobPlanResponse, hardware: Hardware, demand: JobDemand, vendor: str) -> str:
    if vendor not in VENDORS:
        return f"runs on accelerators of {' and '.join(VENDORS)}, not of {vendor}"
    if demand.method == "adapter" or demand.adapter:
        return "has LoRA and QLoRA, but no other adapters"
    if demand.method in FROZEN_METHODS and name != "accelerate":
        return "trains all weights with the scripts that are printed here; accelerate trains adapters"
    is_fsdp = plan.sharding in {"fsdp", "hsdp"}
    if plan.offload not in OFFLOADS.get(name, ("none",)) or ("parameters" in plan.offload and not is_fsdp):
        return f"keeps {plan.offload} in the memory of the host, with settings that are not printed here"
    return LAUNCHERS[name].problem(plan, hardware, demand)
