"""Rows of training jobs: parsed cells, resolved names, and the problems of each row."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, SchemaError, join_errors
from roofcast.data.measurements.cells import CellParser, Finding, Table
from roofcast.data.measurements.column_names import LONG_NAMES, column_cure
from roofcast.data.measurements.column_types import Column
from roofcast.data.measurements.job_schema import (
    ADAPTER_TARGETS,
    TRAINING_COLUMNS,
    TRAINING_CONFIG_COLUMNS,
    TRAINING_OUTCOME_COLUMNS,
)
from roofcast.data.specs import AcceleratorSpec
from roofcast.features.analysis.power import DRAW
from roofcast.features.jobs.hardware import used_on_host
from roofcast.features.jobs.offloads import offload_problem
from roofcast.features.jobs.run_table import FROZEN_METHODS
from roofcast.serving.predict.question_rows import Problem, add_findings, add_problem, columns_from_rows
from roofcast.serving.request_fields import MAX_TOKEN

FSDP: Final = "torchtitan"
MEGATRON: Final = "megatron-lm"
ADAPTERS: Final = "transformers"
"""Default frameworks of jobs with FSDP2, with Megatron-LM, and with PEFT and accelerate."""

FRAMEWORK_OF_VENDOR: Final = {"Google": "maxtext", "AWS": "neuronx-distributed"}

FINE_TUNING_SEQUENCE: Final = 128
"""Global batch of a fine-tuning: that of R. Taori et al., "Stanford Alpaca", 2023."""

PRETRAINING_TOKEN: Final = 4_194_304
"""Tokens of a global batch of pretraining: H. Touvron et al., "Llama 2", 2023, section 2.2."""


def default_framework(job: Mapping[str, Any], accelerator: AcceleratorSpec) -> str:
    """Return the framework that the settings of a job imply.

    Sequences of pretraining that the accelerators do not divide need other parallelism than of replicas; on one
    accelerator all weights are tuned with a plain trainer.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> h100 = load_catalog().accelerator("h100-sxm-80gb")
    >>> default_framework({"method": "full"}, h100), default_framework({"method": "full", "tp": 2.0}, h100)
    ('transformers', 'megatron-lm')
    """
    if accelerator.vendor in FRAMEWORK_OF_VENDOR:
        return FRAMEWORK_OF_VENDOR[accelerator.vendor]
    n, n_batch = job.get("n_accelerator", 1.0), job.get("n_global_batch_sequence", 0.0)
    is_split = any(job.get(name, 1.0) > 1 for name in ("tp", "pp", "vp", "cp", "ep"))
    if is_split or (job["method"] == "pretrain" and n_batch % n):
        return MEGATRON
    if job["method"] in FROZEN_METHODS or (job["method"] == "full" and n == 1.0):
        return ADAPTERS
    return {"zero2": "deepspeed", "zero3": "deepspeed", "zero1": MEGATRON}.get(str(job.get("sharding", "")), FSDP)


def default_batch(method: str, n_token: float) -> int:
    """Return the sequences of a global batch where it is not given: a power of two for pretraining.

    Examples
    --------
    >>> default_batch("lora", 2048), default_batch("pretrain", 4096)
    (128, 1024)
    """
    if method != "pretrain":
        return FINE_TUNING_SEQUENCE
    return int(2 ** max(int(PRETRAINING_TOKEN // n_token).bit_length() - 1, 0))


USUAL_ADAPTERS: Final = {
    "bottleneck": {"adapter_rank": "two bottlenecks of width 64 a layer"},
    "prompt-tuning": {"adapter_rank": "100 virtual tokens"},
}
"""Words for the defaults of `roofcast.features.jobs.methods`, by variant."""


def list_defaults(given: Collection[str], method: str, n_token: int, n_batch: int, adapter: str = "") -> list[str]:
    """Return the values of fields that a request does not have and that move the answer, in words.

    Examples
    --------
    >>> list_defaults({"model", "n_token", "n_epoch"}, "lora", 2048, 128)
    ['sequences of 2048 tokens', '128 sequences a step', 'adapters of rank 16', 'on queries and values']
    """
    texts = {"n_token_per_sequence": f"sequences of {n_token} tokens", "n_epoch": "one epoch"}
    texts["n_global_batch_sequence"] = f"{n_batch} sequences a step"
    if method in FROZEN_METHODS:
        lora = {"adapter_rank": "adapters of rank 16", "adapter_targets": "on queries and values"}
        texts |= USUAL_ADAPTERS.get(adapter, lora)
    return [text for name, text in texts.items() if name not in given]


LATENT_ADAPTERS: Final = (
    "adapters on keys or values are those of both projections of latent attention that give them (kv_a and kv_b)"
)


def list_assumptions(method: str, n_batch: int, *, has_batch: bool, is_latent: bool) -> list[str]:
    """Return what a recommendation assumes, in words.

    `is_latent`: whether LoRA changes multi-head latent attention.
    """
    states = "adapters and their optimizer states in 32 bits" if method in FROZEN_METHODS else "AdamW in 32 bits"
    return [
        "sequences are packed; time is that of optimizer steps, without start, evaluation and checkpoints",
        *([] if has_batch else [f"a step has {n_batch} sequences, as n_global_batch_sequence is not given"]),
        f"states: {states}; attention stores no scores",
        *([LATENT_ADAPTERS] if is_latent else []),
        f"boards draw {DRAW['compute']:.0%} of their design power while they multiply, {DRAW['link']:.0%} while they "
        f"wait for links, {DRAW['queue']:.0%} in pipeline bubbles; hosts and cooling are not counted",
        "several nodes are joined by the network that is usual for the accelerator, such as 400 Gbit/s each for H100",
    ]


MAX_ACCELERATOR: Final = 65_536

JOB_COLUMNS: Final = {
    **TRAINING_CONFIG_COLUMNS,
    "n_accelerator": Column("float", low=1.0, high=MAX_ACCELERATOR, is_whole=True),
    "n_token_per_sequence": Column("float", is_nullable=True, low=1.0, high=MAX_TOKEN, is_whole=True),
    "host_memory_byte": Column(
        "float", is_nullable=True, high=1e15, meaning="Memory of a host, by default that of offers of the accelerator"
    ),
}
"""Input columns: those of a training measurement without outcomes, and what limits a plan."""

JOB_DEFAULTS: Final[Mapping[str, Any]] = {"n_accelerator": 1.0, "method": "pretrain"}
NOT_MULTIPLIED: Final = ("int8", "int4")
"""Precisions of checkpoints and states in which training does not multiply."""

SERVER_PROCESSOR: Final = "CPU socket"
"""Form factor of server processors in the catalogue."""

POWER_LIMIT_RATIO: Final = (0.25, 1.5)
"""Bounds of a power limit over the design power. Judgement, wider than drivers usually allow;
``nvidia-smi -q -d POWER`` prints the range of a card."""

REQUIRED_COLUMNS: Final = ("model", "accelerator")


def parse_jobs(
    rows: Sequence[Mapping[str, Any]],
    catalog: Catalog,
    columns: Mapping[str, Column] = JOB_COLUMNS,
    *,
    is_measured: bool = False,
) -> tuple[list[dict[str, Any]], list[Problem | None]]:
    """Return rows with catalogue ids, numbers as floats and blanks left out, and the problems of each row.

    Columns of outcomes and of the context of a measurement are not read.

    `is_measured`: whether the jobs were run: precisions that an accelerator does not multiply in, and more stages of
    a pipeline than layers, are then facts. Of a job to predict they are errors. Raises `SchemaError` if a column is
    unknown.
    """
    cells = columns_from_rows(rows)
    if unknown := [_unknown_column(name) for name in cells if LONG_NAMES.get(name, name) not in columns]:
        raise join_errors(unknown)
    parser = CellParser(columns, JOB_DEFAULTS, (*REQUIRED_COLUMNS, *JOB_DEFAULTS))
    table, findings = parser.parse(cells or {name: np.full(len(rows), None) for name in REQUIRED_COLUMNS})
    problems: list[Problem | None] = [None] * len(rows)
    add_findings(problems, [*findings, *_check_targets(table)])
    jobs = []
    for i in range(len(rows)):
        given = {name: values[i] for name, values in table.items()}
        jobs.append({**JOB_DEFAULTS, **{name: cell for name, cell in given.items() if cell == cell and cell != ""}})  # noqa: PLR0124
        add = partial(_add_error, problems, i)
        _resolve(jobs[i], catalog, add)
        if not is_measured:
            _check_support(jobs[i], catalog, add)
            _add_host_memory(jobs[i], catalog)
        _check_split(jobs[i], catalog, add)
    return jobs, problems


def _check_targets(table: Table) -> Iterator[Finding]:
    if "adapter_targets" in table:
        cells = table["adapter_targets"]
        is_wrong = np.array([not set(cell.split()) <= set(ADAPTER_TARGETS) for cell in cells], dtype=bool)
        message = f"must be some of {' '.join(ADAPTER_TARGETS)}"
        yield Finding(is_wrong, "adapter_targets", lambda i: f"{message}, got {cells[i][:40]!r}")


Add = Callable[..., None]
"""Adds an error to a row unless the row has one of its field, or of one of further fields that its check reads."""


def _add_error(problems: list[Problem | None], i: int, error: InputError, *uses: str) -> None:
    add_problem(problems, i, Problem.from_error(error), uses)


def job_table(jobs: Iterable[Mapping[str, Any]], columns: Mapping[str, Column] = JOB_COLUMNS) -> pd.DataFrame:
    """Return parsed jobs as a table: every column, NaN and empty texts where blank."""
    table = pd.DataFrame(list(jobs), columns=list(columns), dtype=object)
    for name, column in columns.items():
        if column.kind == "float":
            table[name] = pd.to_numeric(table[name]).astype(float)
        else:
            table[name] = table[name].where(table[name].notna(), "")
    return table


def _unknown_column(name: str) -> SchemaError:
    if name in TRAINING_OUTCOME_COLUMNS:
        return SchemaError(name, "is a result, not an input column; leave it out")
    if name in TRAINING_COLUMNS:
        return SchemaError(name, "describes a measurement, not a job; leave it out")
    return SchemaError(name, f"is not an input column; {column_cure(name, JOB_COLUMNS)}")


def _resolve(job: dict[str, Any], catalog: Catalog, add: Add) -> None:
    for name, find in (("model", catalog.model), ("accelerator", catalog.accelerator)):
        if name in job:
            try:
                job[name] = find(job[name]).id
            except InputError as error:
                add(error)
                del job[name]
    if "accelerator" not in job:
        return
    accelerator = catalog.accelerators[job["accelerator"]]
    if accelerator.form_factor == SERVER_PROCESSOR:
        text = f"{accelerator.id} is a server processor; training on these is not predicted"
        add(InputError("accelerator", text))
    if accelerator.tdp_w and "power_limit_w" in job:
        low, high = (ratio * accelerator.tdp_w for ratio in POWER_LIMIT_RATIO)
        if not low <= job["power_limit_w"] <= high:
            text = f"{accelerator.id}, of {accelerator.tdp_w:g} W, takes limits from {low:g} to {high:g} W"
            text = f"{text}, got {job['power_limit_w']:g}; give one of these or leave it out"
            add(InputError("power_limit_w", text), "accelerator")
    if "framework" not in job:
        job["framework"] = default_framework(job, accelerator)


def multiplies_in(accelerator: AcceleratorSpec, precision: str) -> bool:
    """Return whether an accelerator trains with products in a precision."""
    return precision in accelerator.peak_flop_per_s and precision not in NOT_MULTIPLIED


def _check_support(job: Mapping[str, Any], catalog: Catalog, add: Add) -> None:
    precision = job.get("compute_precision", "")
    if precision and "accelerator" in job:
        accelerator = catalog.accelerators[job["accelerator"]]
        if not multiplies_in(accelerator, precision):
            usual = ", ".join(name for name in accelerator.peak_flop_per_s if multiplies_in(accelerator, name))
            text = f"{accelerator.id} trains in {usual or 'none'}, got {precision!r}"
            add(InputError("compute_precision", text), "accelerator")
    if "framework" in job:
        texts = (job.get(name, "") for name in ("framework", "sharding", "offload"))
        if problem := offload_problem(*texts, is_one=job["n_accelerator"] <= 1.0):
            add(InputError("offload", problem), "framework", "sharding")
    if "model" in job and job.get("pp", 1.0) > (n_layer := catalog.models[job["model"]].n_layer):
        add(InputError("pp", f"must not exceed the model's {n_layer} layers, got {job['pp']:g}"))


def _add_host_memory(job: dict[str, Any], catalog: Catalog) -> None:
    if "accelerator" in job and "host_memory_byte" not in job:
        nodes = (job.get(name, math.nan) for name in ("n_node", "n_accelerator_per_node"))
        on_host = float(used_on_host(job["n_accelerator"], *nodes))
        job["host_memory_byte"] = catalog.host_memory_byte(job["accelerator"]) * on_host


def _check_split(job: Mapping[str, Any], catalog: Catalog, add: Add) -> None:
    n, n_node = job["n_accelerator"], job.get("n_node", 1.0)
    tp, pp, cp = (job.get(name, 1.0) for name in ("tp", "pp", "cp"))
    rest = n / (tp * pp * cp)
    if n_node > n:
        text = f"must not exceed n_accelerator, which is {n:g}; got {n_node:g}"
        add(InputError("n_node", text), "n_accelerator")
    per_node = job.get("n_accelerator_per_node", n)
    if "n_node" in job and n_node * per_node < n:
        text = f"{n_node:g} nodes of {per_node:g} accelerators are fewer than n_accelerator, which is {n:g}"
        add(InputError("n_accelerator_per_node", text), "n_node", "n_accelerator")
    if not rest.is_integer():
        text = f"tp x pp x cp must divide n_accelerator, which is {n:g}; got {tp * pp * cp:g}"
        add(InputError("tp", text), "pp", "cp", "n_accelerator")
    if "dp" in job and (job["dp"] > rest or n % job["dp"]):
        text = f"must divide the {rest:g} accelerators that tp, pp and cp leave, got {job['dp']:g}"
        add(InputError("dp", text), "tp", "pp", "cp", "n_accelerator")
    if "model" not in job:
        return
    model = catalog.models[job["model"]]
    if model.n_head % tp:
        add(InputError("tp", f"must divide the model's {model.n_head} attention heads, got {tp:g}"))
    ep = job.get("ep", 1.0)
    if ep > 1 and (not model.n_expert or model.n_expert % ep):
        of = f"divide the model's {model.n_expert} experts" if model.n_expert else "be 1: the model has no experts"
        add(InputError("ep", f"must {of}, got {ep:g}"))
