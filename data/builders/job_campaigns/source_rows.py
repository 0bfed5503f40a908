"""Conversion of source rows to a training campaign: resolve names, derive and check values, reject by rule."""

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from builders.build_result import REJECTED_COLUMNS, BuildResult
from builders.figures import round_figure
from builders.job_campaigns.duplicates import PRINTED_RTOL, Cells, merge_duplicates
from builders.published import Record, RejectionError
from roofcast.data.catalog import Catalog
from roofcast.data.errors import UnknownNameError
from roofcast.data.job_campaigns import job_catalog
from roofcast.data.measurements.job_schema import TRAINING_OUTCOME_COLUMNS
from roofcast.data.measurements.job_validation import STEP_RTOL, validate_training_measurements
from roofcast.data.specs import AcceleratorSpec, ModelSpec

PRINTED_NAMES: Final[Mapping[str, Any]] = tomllib.loads(
    (Path(__file__).parents[1] / "printed_names.toml").read_text(encoding="utf-8")
)
"""Names that sources print: catalogue id by model and accelerator, and headings of tables."""

PER_ACCELERATOR: Final = "throughput_token_per_s_per_accelerator"
"""Optional cell of a source row, in place of the total throughput."""

NODE_SIZE: Final = "node_size"
"""Optional cell of a source row: accelerators of a full node."""

_MAX_ATTENTION_TOKEN: Final = 8192.0
"""Longest sequence whose attention counts in full: over longer ones, layers may attend to windows."""

MAX_MFU: Final = 0.85
"""Largest plausible share of the dense peak that the model's products take."""

CAPACITY_SLACK: Final = 1.02
"""Maximum plausible reading relative to the memory; sources differ in the size of a gigabyte."""

FLOP_SLACK: Final = 2.0
"""Maximum plausible FLOP per token relative to the standard formula; some sources use nearly twice as many."""


def build(
    campaign: str,
    n_read: int,
    rows: Iterable[Record],
    rtol: float = PRINTED_RTOL,
    *,
    revise: Callable[[Mapping[str, Cells]], dict[str, str]] | None = None,
) -> BuildResult:
    """Return the campaign of the source rows that pass every rule.

    Rules, in order: `unknown_model` and `unknown_accelerator` if the catalogue lacks the name; `no_outcome` if no
    outcome is given; `impossible_split` if the parallel sizes do not divide the number of accelerators, or are all
    known and their product differs from it; `inconsistent` if throughput contradicts batch and step time, or FLOP/s;
    `above_peak` and `above_capacity` if a value exceeds the accelerator's; `near_peak` if the products alone take
    more than `MAX_MFU` of the peak; `duplicate` if an earlier revision of the source holds the same measurement.

    A contradictory pair of micro batch and accumulation is blanked, and the row's note states it.

    - `campaign`: Name of the campaign.
    - `n_read`: Number of published rows.
    - `rows`: Runs: cells of a training row, with names as printed, or the rule that rejects them.
    - `rtol`: Relative tolerance between outcomes of duplicates.
    - `revise`: Returns what supersedes a run, by reference; such runs are rejected as `superseded_release`.
    """
    catalog = job_catalog()
    accepted: dict[str, Cells] = {}
    rejected: list[tuple[str, str, str]] = []
    for record in rows:
        try:
            if record.rejection is not None:
                raise RejectionError(*record.rejection)
            stated = {name: value for name, value in record.cells.items() if value not in {None, ""}}
            accepted[record.reference] = _complete_cells(stated, catalog)
        except RejectionError as error:
            rejected.append((record.reference, error.reason, error.detail))
    merged, originals = merge_duplicates(accepted, rtol)
    rejected += [(copy, "duplicate", f"the same as {original}") for copy, original in originals.items()]
    superseded = revise(merged) if revise else {}
    rejected += [(reference, "superseded_release", text) for reference, text in superseded.items()]
    table = pd.DataFrame([c | {"campaign": campaign} for name, c in merged.items() if name not in superseded])
    accepted_rows = validate_training_measurements(table, campaign)
    return BuildResult(accepted_rows, n_read, pd.DataFrame(rejected, columns=list(REJECTED_COLUMNS)))


def _complete_cells(source: Mapping[str, object], catalog: Catalog) -> Cells:
    cells = dict(source)
    model = _model(str(cells.get("model", "")), catalog)
    cells["model"] = model.id
    accelerator = _accelerator(str(cells.get("accelerator", "")), catalog)
    cells["accelerator"] = accelerator.id
    if "n_accelerator" not in cells:
        raise RejectionError("unknown_accelerator", "the number of accelerators is not given")
    if PER_ACCELERATOR in cells:
        cells["throughput_token_per_s"] = round_figure(
            _float(cells.pop(PER_ACCELERATOR)) * _n(cells, "n_accelerator")
        )
    if not any(name in cells for name in TRAINING_OUTCOME_COLUMNS) and cells.get("status", "ok") == "ok":
        raise RejectionError("no_outcome", "the row holds no measured value")
    if "memory_byte_per_accelerator" not in cells:
        cells.pop("memory_kind", None)
    _count_nodes(cells)
    _check_split(cells)
    _drop_wrong_accumulation(cells)
    _derive(cells)
    _check_plausible(cells, model, accelerator)
    return cells


def _model(name: str, catalog: Catalog) -> ModelSpec:
    try:
        return catalog.model(PRINTED_NAMES["model"].get(name.casefold(), name))
    except UnknownNameError:
        raise RejectionError("unknown_model", name[:200] or "no model is named") from None


def _accelerator(name: str, catalog: Catalog) -> AcceleratorSpec:
    try:
        return catalog.accelerator(PRINTED_NAMES["accelerator"].get(name.casefold(), name))
    except UnknownNameError:
        raise RejectionError("unknown_accelerator", name[:200] or "no accelerator is named") from None


def _count_nodes(cells: Cells) -> None:
    n_accelerator, size = _n(cells, "n_accelerator"), cells.pop(NODE_SIZE, None)
    if "n_node" in cells:
        per_node = n_accelerator / _n(cells, "n_node")
    elif size is not None:
        per_node = min(n_accelerator, _float(size))
    else:
        return
    if per_node.is_integer() and n_accelerator % per_node == 0:
        cells |= {"n_node": n_accelerator / per_node, "n_accelerator_per_node": per_node}


def _check_split(cells: Cells) -> None:
    n_accelerator = _n(cells, "n_accelerator")
    n_split = _n(cells, "tp") * _n(cells, "pp") * _n(cells, "cp")
    if n_accelerator % n_split:
        detail = f"tp x pp x cp = {n_split:g} does not divide {n_accelerator:g} accelerators"
        raise RejectionError("impossible_split", detail)
    n_rank = n_split * _n(cells, "dp")
    if n_accelerator % n_rank or (cells.keys() >= {"tp", "pp", "dp"} and n_accelerator != n_rank):
        detail = f"tp x pp x cp x dp = {n_rank:g}, the accelerators are {n_accelerator:g}"
        raise RejectionError("impossible_split", detail)


def _drop_wrong_accumulation(cells: Cells) -> None:
    names = ("n_global_batch_sequence", "n_micro_batch_sequence", "n_gradient_accumulation")
    if any(name not in cells for name in names):
        return
    n_global, micro, printed = (_n(cells, name) for name in names)
    n_split = _n(cells, "tp") * _n(cells, "pp") * _n(cells, "cp")
    n_replica = _n(cells, "dp") if "dp" in cells else _n(cells, "n_accelerator") / n_split
    n_pass = math.ceil(n_global / (micro * n_replica))  # sources count a last micro batch that is not full
    if printed != n_pass:
        remark = (
            f"printed micro batch {micro:g} and accumulation {printed:g} contradict: {n_pass} would make the batch"
        )
        del cells["n_micro_batch_sequence"], cells["n_gradient_accumulation"]
        cells["note"] = "; ".join(filter(None, (str(cells.get("note", "")), remark)))


def _derive(cells: Cells) -> None:
    if "n_global_batch_sequence" not in cells or "n_token_per_sequence" not in cells:
        return
    if cells.get("packing") == "padded":  # the length is the longest
        return
    n_token = _n(cells, "n_global_batch_sequence") * _n(cells, "n_token_per_sequence")
    step, throughput = cells.get("step_time_s"), cells.get("throughput_token_per_s")
    if step is not None and throughput is not None:
        ratio = _float(step) * _float(throughput) / n_token
        if abs(ratio - 1.0) > STEP_RTOL:
            raise RejectionError("inconsistent", f"throughput x step time is {ratio:.3g} of the global batch")
    elif step is not None:
        cells |= {"throughput_token_per_s": round_figure(n_token / _float(step)), "derived": "throughput_token_per_s"}
    elif throughput is not None:
        cells |= {"step_time_s": round_figure(n_token / _float(throughput)), "derived": "step_time_s"}


def _check_plausible(cells: Cells, model: ModelSpec, accelerator: AcceleratorSpec) -> None:
    peaks = {name: rate for name, rate in accelerator.peak_flop_per_s.items() if not name.startswith("int")}
    peak = next((rate for name, rate in peaks.items() if name == cells.get("compute_precision")), max(peaks.values()))
    for name in ("model_flop_per_s_per_accelerator", "hardware_flop_per_s_per_accelerator"):
        if _float(cells.get(name, 0.0)) > peak:
            raise RejectionError("above_peak", f"{name} is {_float(cells[name]):g}, the peak {peak:g}")
    for name in ("mfu_ratio", "hfu_ratio"):
        if _float(cells.get(name, 0.0)) > 1.0:
            raise RejectionError("above_peak", f"{name} is {_float(cells[name]):g}")
    published = max(
        _float(cells.get("mfu_ratio", 0.0)), _float(cells.get("model_flop_per_s_per_accelerator", 0.0)) / peak
    )
    if published > MAX_MFU:
        raise RejectionError("near_peak", f"model FLOP/s are {published:.3g} of the peak")
    _check_rate(cells, model, peak)
    _check_flop_per_token(cells, model)
    used = _float(cells.get("memory_byte_per_accelerator", 0.0))
    if used > accelerator.memory_byte * CAPACITY_SLACK:
        raise RejectionError("above_capacity", f"{used:g} bytes of {accelerator.memory_byte:g}")


def _check_rate(cells: Cells, model: ModelSpec, peak: float) -> None:
    method, rate = str(cells.get("method", "")), _float(cells.get("throughput_token_per_s", 0))
    least = _least_flop_per_token(model, method)
    length = min(_float(cells.get("n_token_per_sequence", 0.0)), _MAX_ATTENTION_TOKEN)
    attention = 6.0 * model.n_layer * model.n_head * model.head_dim * length
    is_frozen = method in {"lora", "qlora", "adapter"}
    capacity = peak * _n(cells, "n_accelerator")
    detail = f"the tokens need {least * rate:g} FLOP/s, the peak is {peak:g} per accelerator"
    if least * rate > capacity:
        raise RejectionError("above_peak", detail)
    likely = max(least, _least_flop_per_token(model, "lora" if is_frozen else method))
    if (likely + attention * (0.5 if is_frozen else 1.0)) * rate > MAX_MFU * capacity:
        raise RejectionError("near_peak", f"{detail}; with attention it takes more than {MAX_MFU:g} of it")


def _check_flop_per_token(cells: Cells, model: ModelSpec) -> None:
    rate, throughput = cells.get("model_flop_per_s_per_accelerator"), cells.get("throughput_token_per_s")
    length = _float(cells.get("n_token_per_sequence", 0.0))
    if rate is None or throughput is None or not length:
        return
    attention = 12.0 * model.n_layer * model.n_head * model.head_dim * length
    most = FLOP_SLACK * (6.0 * (model.n_param_active - model.n_param_lookup) + attention)
    published = _float(rate) * _n(cells, "n_accelerator") / _float(throughput)
    if published > most:
        raise RejectionError("inconsistent", f"{published:.3g} FLOP for a token, {most:.3g} at most")


def _least_flop_per_token(model: ModelSpec, method: str) -> float:
    # A weight outside embedding tables costs 2 FLOP forward, 2 backward, and 2 for its gradient if it is trained.
    # Adapters other than LoRA may be in the last layers only, so that the backward pass is short.
    n_weight = model.n_param_active - model.n_param_lookup - model.vocab_size * model.hidden_size
    return {"lora": 4.0, "qlora": 4.0, "adapter": 2.0}.get(method, 6.0) * max(n_weight, 0)


def _n(cells: Mapping[str, object], name: str) -> float:
    return _float(cells.get(name, 1.0))


def _float(value: object) -> float:
    return float(str(value))
