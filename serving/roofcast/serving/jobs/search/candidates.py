"""Hardware that a training job may run on: accelerators, nodes and frameworks, within constraints and offers."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.specs import AcceleratorSpec, ModelSpec, Offer
from roofcast.features.jobs.hardware import HOST_SIZE
from roofcast.features.jobs.run_table import FROZEN_METHODS
from roofcast.serving.jobs.rows import ADAPTERS, FRAMEWORK_OF_VENDOR, FSDP, MEGATRON, SERVER_PROCESSOR, multiplies_in
from roofcast.serving.recommend.demand.constraints import OwnedNodes

NOT_FOR_TRAINING: Final = ("aws-inferentia1", "aws-inferentia2")


@dataclass(frozen=True, slots=True)
class JobDemand:
    """What is trained, and within which limits.

    - `total_token`: Tokens of all epochs.
    - `n_token`, `n_batch`: Tokens of a sequence, and sequences of an optimizer step.
    - `deadline_h`, `budget_usd`: Infinite where there is none.
    - `adapter_targets`: Separated by spaces; blank for the usual.
    - `compute_precision`: Blank for BF16, or FP16 where that is missing.
    - `frameworks`: Empty for those that the method is usually run with.
    - `adapter`: Variant of an adapter method; blank for LoRA.
    """

    model: ModelSpec
    method: str
    total_token: float
    n_token: int
    n_batch: int
    deadline_h: float
    budget_usd: float
    adapter_rank: float
    adapter_targets: str
    compute_precision: str
    frameworks: tuple[str, ...]
    adapter: str = ""

    @property
    def n_step(self) -> int:
        """Optimizer steps of the run: the last takes a full batch, too."""
        return math.ceil(round(self.total_token / self.n_step_token, 6)) or 1

    @property
    def n_step_token(self) -> int:
        """Tokens of an optimizer step."""
        return self.n_token * self.n_batch


class Hardware(NamedTuple):
    """Accelerators of one kind: `n_per_node` on each of `n_node` nodes."""

    accelerator: str
    n_per_node: int
    n_node: int

    @property
    def n_accelerator(self) -> int:
        """Accelerators of the run."""
        return self.n_per_node * self.n_node


def list_hardware(
    offers: Iterable[Offer], accelerators: Mapping[str, AcceleratorSpec], max_nodes: int
) -> list[Hardware]:
    """Return the hardware of offers, one of each kind and size.

    A run takes a power of two of the accelerators of a node, and of nodes. Nodes are joined if they are whole hosts:
    eight accelerators, or four of a scale-up domain of several hosts; others have a network that no row describes.
    """
    found: dict[Hardware, None] = {}
    for offer in offers:
        spec = accelerators[offer.accelerator]
        most = min(max_nodes, offer.n_node) if isinstance(offer, OwnedNodes) else max_nodes
        n_node = 1
        while n_node <= (most if _joins_nodes(offer, spec) else 1):
            found[Hardware(offer.accelerator, used_per_node(offer), n_node)] = None
            n_node *= 2
    return list(found)


def used_per_node(offer: Offer) -> int:
    """Return the accelerators of an instance that a run takes: the largest power of two."""
    return int(2 ** (offer.n_accelerator.bit_length() - 1))


def _joins_nodes(offer: Offer, spec: AcceleratorSpec) -> bool:
    least = HOST_SIZE / 2 if spec.link_domain_size > HOST_SIZE else HOST_SIZE
    return offer.n_accelerator >= least


def exclusion(spec: AcceleratorSpec, demand: JobDemand) -> str:
    """Return why an accelerator does not train a job whatever its memory; blank if it may."""
    if spec.form_factor == SERVER_PROCESSOR or spec.id in NOT_FOR_TRAINING:
        return "is not made for training"
    if demand.compute_precision and not multiplies_in(spec, demand.compute_precision):
        return f"does not multiply in {demand.compute_precision}"
    if not frameworks_of(spec, demand):
        return "runs none of the frameworks named"
    return ""


def frameworks_of(spec: AcceleratorSpec, demand: JobDemand) -> tuple[str, ...]:
    """Return the frameworks to search on an accelerator."""
    own = FRAMEWORK_OF_VENDOR.get(spec.vendor)
    if own:
        return () if demand.frameworks else (own,)
    usual = (ADAPTERS,) if demand.method in FROZEN_METHODS else (FSDP, MEGATRON)
    return demand.frameworks or usual


def candidate_table(hardware: Sequence[Hardware], demand: JobDemand, catalog: Catalog) -> pd.DataFrame:
    """Return one row of the training table for each hardware, framework and sharding, plans left open.

    The column `hardware` has the index of the hardware.
    """
    rows: list[dict[str, Any]] = []
    for index, one in enumerate(hardware):
        spec = catalog.accelerators[one.accelerator]
        precision = demand.compute_precision or ("bf16" if "bf16" in spec.peak_flop_per_s else "fp16")
        for framework in frameworks_of(spec, demand):
            rows.extend(
                {
                    "hardware": index, "accelerator": one.accelerator, "n_accelerator": one.n_accelerator,
                    "n_node": one.n_node, "n_accelerator_per_node": one.n_per_node, "framework": framework,
                    "sharding": sharding, "compute_precision": precision,
                    "compiled": "on" if framework == FSDP else "",
                    "host_memory_byte": one.n_per_node * catalog.host_memory_byte(one.accelerator),
                }
                for sharding in _shardings(framework, one)
            )  # fmt: skip
    table = pd.DataFrame(rows)
    shared: dict[str, Any] = {
        "model": demand.model.id, "method": demand.method, "n_token_per_sequence": float(demand.n_token),
        "n_global_batch_sequence": float(demand.n_batch), "adapter": demand.adapter,
        "adapter_rank": demand.adapter_rank, "adapter_targets": demand.adapter_targets, "loss": "", "offload": "",
    }  # fmt: skip
    numbers = dict.fromkeys(("n_accelerator", "n_node", "n_accelerator_per_node"), float)
    return table.assign(**shared).astype(numbers)


def _shardings(framework: str, one: Hardware) -> tuple[str, ...]:
    if framework == FSDP:
        return ("fsdp", "hsdp") if one.n_node > 1 else ("fsdp",)
    return ("",)
