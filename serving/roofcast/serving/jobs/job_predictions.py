"""Prediction of training jobs: rows of jobs in, rows of answers out, each with its own status."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.measurements.cells import object_column
from roofcast.data.measurements.column_names import LONG_NAMES
from roofcast.data.specs import AcceleratorSpec
from roofcast.data.units import BYTE_PER_GB
from roofcast.features.analysis.power import DRAW
from roofcast.features.descriptors.descriptor_table import TYPICAL_TDP_W
from roofcast.features.descriptors.prediction_input import column_arrays
from roofcast.features.jobs.hardware import used_on_host
from roofcast.features.jobs.plan_enumeration import USABLE_RATIO, PlanChoice, choose_plans, host_ratio
from roofcast.features.jobs.run_columns import JobRuns
from roofcast.features.jobs.run_table import build_jobs, compute_precisions
from roofcast.features.jobs.step.job_memory import JobMemory, correct_memory
from roofcast.features.jobs.step.step import JobTime, mfu_ratio, throughput_token_per_s
from roofcast.features.queries import FloatArray
from roofcast.serving.abandonment import stop_if_abandoned
from roofcast.serving.defaults import DEFAULT_LEVEL
from roofcast.serving.jobs.rows import job_table, parse_jobs
from roofcast.serving.jobs.search.plans import (
    LEAST_P_FITS,
    PLAN_COLUMNS,
    is_sound,
    keeps_stated,
    plan_columns,
    predict_jobs,
    with_fastest_plans,
)
from roofcast.serving.predict.name_remarks import name_remarks
from roofcast.serving.predict.question_rows import Problem, columns_from_rows
from roofcast.training.jobs.job_predictor import JobPrediction, JobPredictor

Columns = dict[str, npt.NDArray[Any]]

STAGE_PARTS: Final = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
MEMORY_PARTS: Final = (*STAGE_PARTS, "reserve")
"""Parts of allocated memory, and what the allocator and the driver hold beyond."""

INTERVAL_METRICS: Final = ("step_time_s", "throughput_token_per_s", "mfu_ratio", "peak_memory_byte")
METRIC_COLUMNS: Final = tuple(f"{metric}{end}" for metric in INTERVAL_METRICS for end in ("", "_lo", "_hi"))
MEMORY_COLUMNS: Final = (
    *(f"memory_{part}_byte" for part in MEMORY_PARTS), "memory_capacity_byte", "memory_host_byte",
)  # fmt: skip


def job_numbers(runs: JobRuns, time: JobTime, memory: JobMemory, prediction: JobPrediction) -> Columns:
    """Return `METRIC_COLUMNS`, `MEMORY_COLUMNS`, `p_fits` and `power_share` of jobs: shapes (n_job,).

    `memory`: with the predicted peak, see `roofcast.features.jobs.step.job_memory.correct_memory`.
    """
    plan, job, n = runs.plan, runs.job, runs.job.n_accelerator
    token = plan.n_micro_batch * plan.micro_batch * plan.dp * job.n_token * job.content_ratio  # without padding
    mfu_of_rate = mfu_ratio(runs, time) / throughput_token_per_s(runs, time)
    rate = {
        "": prediction.token_per_s_per_accelerator * n,
        "_lo": prediction.token_per_s_per_accelerator_low * n,
        "_hi": prediction.token_per_s_per_accelerator_high * n,
    }
    numbers: Columns = {"p_fits": prediction.p_fits, "power_share": power_share(time)}
    for end, opposite in (("", ""), ("_lo", "_hi"), ("_hi", "_lo")):
        numbers[f"throughput_token_per_s{end}"] = rate[end]
        numbers[f"step_time_s{end}"] = token / rate[opposite]
        numbers[f"mfu_ratio{end}"] = rate[end] * mfu_of_rate
    numbers["peak_memory_byte"] = prediction.peak_memory_byte
    numbers["peak_memory_byte_lo"] = prediction.peak_memory_byte_low
    numbers["peak_memory_byte_hi"] = prediction.peak_memory_byte_high
    numbers |= {f"memory_{part}_byte": values for part, values in memory_parts(memory).items()}
    numbers |= {"memory_capacity_byte": runs.hardware.memory_byte, "memory_host_byte": memory.host}
    return {name: np.broadcast_to(values, n.shape) for name, values in numbers.items()}


def memory_parts(memory: JobMemory) -> dict[str, FloatArray]:
    """Return the estimated memory in use on the device by part, of the pipeline stage that needs most.

    The parts add up to `JobMemory.device`.
    """
    is_first = memory.first.allocated >= memory.last.allocated
    parts = {
        name: np.where(is_first, getattr(memory.first, name), getattr(memory.last, name)) for name in STAGE_PARTS
    }
    return parts | {"reserve": memory.device - memory.allocated}


def design_power_w(accelerator: AcceleratorSpec) -> float:
    """Return the design power of an accelerator, or a typical one where its data sheet has none."""
    return accelerator.tdp_w or TYPICAL_TDP_W


def power_share(time: JobTime) -> FloatArray:
    """Return the mean power over the design power of an accelerator: shape (n_row,).

    Products draw the design power, links and launches less, the optimizer that of memory traffic, a pipeline that
    waits that of an idle board: see `roofcast.features.analysis.power.DRAW`.
    """
    links = time.tensor_s + time.context_s + time.expert_s + time.stage_s + time.data_s + time.offload_s
    drawn = DRAW["compute"] * (time.compute_s + time.recomputation_s) + DRAW["link"] * links
    drawn = drawn + DRAW["memory"] * time.optimizer_s + DRAW["launch"] * time.overhead_s
    return (drawn + DRAW["queue"] * time.bubble_s) / time.total_s


PLAN_ANSWERS: Final = ("plan_framework", *(f"plan_{name}" for name in PLAN_COLUMNS))
NUMBERS_AND_PLAN: Final = (*METRIC_COLUMNS, "p_fits", "power_w", *MEMORY_COLUMNS, *PLAN_ANSWERS)
ANSWER_COLUMNS: Final = (*NUMBERS_AND_PLAN, "status", "reason", "outside", "assumed")
"""Answers of a row: of the whole job, but memory and MFU of one accelerator; `power_w` of all boards, on average."""

STATUSES: Final = ("ok", "invalid", "unknown_name", "does_not_fit", "out_of_range")

COUNTS: Final = ("dp", "n_micro_batch_sequence", "n_gradient_accumulation", "n_global_batch_sequence")
"""Counts of a plan that follow from each other."""

N_TOGETHER: Final = 8
"""Jobs whose plans are searched between two looks at whether the client has left."""

ASSUMED_COLUMNS: Final = (
    "sharding", "recomputation", "n_micro_batch_sequence", "n_global_batch_sequence",
    "n_token_per_sequence", "loss", "offload", "compute_precision",
)  # fmt: skip
"""Columns whose blanks `assumed` names with the values that the answer rests on."""


DEFAULTED: Final = ("framework", "host_memory_byte")
"""Columns whose blanks are filled when a row is read."""

STATE_COLUMNS: Final = ("weight_precision", "gradient_precision", "state_precision")


def answer_jobs(
    rows: Sequence[Mapping[str, Any]], predictor: JobPredictor, catalog: Catalog, level: float = DEFAULT_LEVEL
) -> Columns:
    """Return `ANSWER_COLUMNS` of rows; one without an answer has a status and a reason, and no times.

    `level`: coverage of the intervals. Raises `SchemaError` if a column is unknown.
    """
    jobs, problems = parse_jobs(rows, catalog)
    answers = _blank_answers(len(jobs))
    valid = [i for i, problem in enumerate(problems) if problem is None]
    for start in range(0, len(valid), N_TOGETHER):
        stop_if_abandoned()
        chunk = np.array(valid[start : start + N_TOGETHER], dtype=np.intp)
        table = job_table([jobs[i] for i in chunk])
        _answer(table, chunk, answers, problems, predictor=predictor, catalog=catalog, level=level)
    meant = name_remarks(columns_from_rows(rows), catalog) if valid else []
    for i in valid:
        given = {
            LONG_NAMES.get(name, name) for name, cell in rows[i].items() if str("" if cell is None else cell).strip()
        }
        filled = [f"{name}={_text(jobs[i][name])}" for name in DEFAULTED if name not in given]
        answers["assumed"][i] = ", ".join([*filled, answers["assumed"][i]])
    for i, problem in enumerate(problems):
        if problem is not None:
            answers["status"][i], answers["reason"][i] = problem.status, str(problem)
        else:
            answers["reason"][i] = "; ".join(filter(None, [meant[i], answers["reason"][i]]))
    return answers


def _blank_answers(n_row: int) -> Columns:
    texts = ("framework", "sharding", "recomputation", "sequence_parallel", "loss", "offload")
    answers: Columns = {name: np.full(n_row, np.nan) for name in ANSWER_COLUMNS}
    answers |= {name: object_column(n_row, "") for name in ("reason", "assumed", *(f"plan_{t}" for t in texts))}
    return answers | {"status": object_column(n_row, "ok"), "outside": np.zeros(n_row, dtype=bool)}


def _answer(
    table: pd.DataFrame,
    rows: npt.NDArray[np.intp],
    answers: Columns,
    problems: list[Problem | None],
    *,
    predictor: JobPredictor,
    catalog: Catalog,
    level: float,
) -> None:
    stated = with_fastest_plans(table, catalog, predictor)
    jobs = build_jobs(stated, catalog.models, catalog.accelerators, has_offload=True)
    choice = choose_plans(jobs)
    plans = plan_columns(choice.runs, table)
    prediction = predict_jobs(table.assign(**plans), catalog, predictor, level)
    sound = is_sound(choice.runs.job.n_accelerator, choice.runs.job.n_global_batch, choice.runs.plan)
    kept = keeps_stated(table, np.arange(len(table)), choice.runs.plan)
    memory = correct_memory(choice.memory, prediction.peak_memory_byte)
    numbers = job_numbers(choice.runs, choice.time, memory, prediction)
    tdp = [design_power_w(catalog.accelerators[name]) for name in table["accelerator"]]
    share = numbers.pop("power_share") * table["n_accelerator"].to_numpy()
    columns = numbers | {f"plan_{name}": values for name, values in plans.items()}
    columns["plan_framework"] = table["framework"].to_numpy(dtype=object)
    columns["outside"] = prediction.outside
    columns["power_w"] = np.fmin(tdp, table["power_limit_w"].to_numpy(dtype=float)) * share
    for name, values in columns.items():
        answers[name][rows] = values
    assumed = _assumed(table, plans, choice, catalog)
    on_host = host_ratio(choice.runs, memory) > memory.device / choice.runs.hardware.memory_byte
    lacks = [
        ("host_memory_byte", _lack_of_host(table.iloc[k], str(plans["offload"][k]), float(memory.host[k])))
        if on_host[k]
        else ("n_accelerator", _lack_of_memory(numbers, k))
        for k in range(len(table))
    ]
    for k, i in enumerate(rows.tolist()):
        answers["assumed"][i] = assumed[k]
        if not sound[k]:
            problems[i] = _unsound_problem(table.iloc[k])
            _clear(answers, i, NUMBERS_AND_PLAN)
        elif prediction.p_fits[k] < LEAST_P_FITS:
            problems[i] = Problem("does_not_fit", *lacks[k])
            times = [name for name in METRIC_COLUMNS if not name.startswith("peak_memory")]
            _clear(answers, i, (*times, "power_w"))
        elif not kept[k]:
            problems[i] = _contradiction(table.iloc[k], {name: float(plans[name][k]) for name in COUNTS})
            _clear(answers, i, NUMBERS_AND_PLAN)
        elif not choice.fits[k]:
            answers["reason"][i] = f"may not fit: {lacks[k][1]}"
        elif table["offload"].iloc[k] == "" and plans["offload"][k] != "none":
            held = f"{memory.host[k] / BYTE_PER_GB:.1f} GB for each accelerator"
            answers["reason"][i] = f"fits with {plans['offload'][k]} in the memory of the host: {held}"


def _assumed(table: pd.DataFrame, plans: Columns, choice: PlanChoice, catalog: Catalog) -> list[str]:
    job = choice.runs.job
    precision = compute_precisions(column_arrays(table), catalog.accelerators)
    own = plans | {"n_token_per_sequence": job.n_token, "compute_precision": precision}
    values = table.assign(**own)[list(ASSUMED_COLUMNS)]
    blank = table[list(ASSUMED_COLUMNS)].isna() | (table[list(ASSUMED_COLUMNS)] == "")
    states = np.column_stack([job.weight_byte, job.gradient_byte, job.optimizer_byte])
    lines = []
    for k in range(len(table)):
        named = [f"{name}={_text(values[name].iloc[k])}" for name in ASSUMED_COLUMNS if blank[name].iloc[k]]
        stated = [name for name in STATE_COLUMNS if table[name].iloc[k] != ""]
        if len(stated) < len(STATE_COLUMNS):
            of = "weight, gradient and optimizer of a trained weight"
            named.append(f"{' + '.join(f'{byte:.3g}' for byte in states[k])} bytes for {of}")
        lines.append(", ".join(named))
    return lines


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value / BYTE_PER_GB:.1f} GB" if value > BYTE_PER_GB else f"{value:g}"


def _clear(answers: Columns, i: int, names: Sequence[str]) -> None:
    for name in names:
        answers[name][i] = "" if answers[name].dtype == object else np.nan


def _unsound_problem(row: pd.Series) -> Problem:
    batch = row["n_global_batch_sequence"]
    if pd.isna(batch):
        return Problem("invalid", "n_accelerator", "no plan of these settings uses every accelerator")
    text = f"no plan of these settings splits {batch:g} sequences evenly over {row['n_accelerator']:g} accelerators"
    return Problem("invalid", "n_global_batch_sequence", f"{text}; give a multiple of the replicas")


def _contradiction(row: pd.Series, plan: Mapping[str, float]) -> Problem:
    if not (pd.isna(row["dp"]) or row["dp"] == plan["dp"]):
        text = f"no plan of these settings has {row['dp']:g} replicas and may fit; one has {plan['dp']:g}"
        return Problem("invalid", "dp", text)
    text = (
        f"contradicts {plan['n_global_batch_sequence']:g} sequences in micro-batches of "
        f"{plan['n_micro_batch_sequence']:g} over {plan['dp']:g} replicas, which are "
        f"{plan['n_gradient_accumulation']:g} each; got {row['n_gradient_accumulation']:g}"
    )
    return Problem("invalid", "n_gradient_accumulation", text)


def _lack_of_host(row: pd.Series, held: str, host_byte: float) -> str:
    n = used_on_host(*(row[name] for name in ("n_accelerator", "n_node", "n_accelerator_per_node")))
    needed, own = n * host_byte / USABLE_RATIO / BYTE_PER_GB, row["host_memory_byte"] / BYTE_PER_GB
    text = f"the leanest plan with {held} on the host needs {needed:.1f} GB of its memory, of {own:.1f} GB"
    return f"{text}; give host_memory_byte if it has so much, more accelerators, or a method such as qlora"


def _lack_of_memory(numbers: Columns, i: int) -> str:
    parts = {name: float(numbers[f"memory_{name}_byte"][i]) / BYTE_PER_GB for name in MEMORY_PARTS}
    largest = sorted(parts, key=parts.__getitem__, reverse=True)[:3]
    listed = ", ".join(f"{parts[name]:.1f} GB of {name}" for name in largest)
    capacity = numbers["memory_capacity_byte"][i] / BYTE_PER_GB
    return f"the leanest plan needs {sum(parts.values()):.1f} GB on an accelerator of {capacity:.1f} GB: {listed}"
