"""From what a source says to a campaign: names resolved, values derived and checked, the rest set aside by rule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import pandas as pd

from builders.campaigns.build_result import BuildResult
from builders.quarantine import QUARANTINE_COLUMNS
from builders.training_campaigns.duplicates import PRINTED_RTOL, merge_duplicates
from builders.training_campaigns.names import ACCELERATOR_NAMES, MODEL_NAMES
from roofcast.data.catalog import Catalog
from roofcast.data.errors import UnknownNameError
from roofcast.data.measurements.training_schema import TRAINING_OUTCOME_COLUMNS
from roofcast.data.measurements.training_validation import STEP_RTOL, validate_training_measurements
from roofcast.data.specs import AcceleratorSpec, ModelSpec
from roofcast.data.training_campaigns.models import training_catalog

PER_ACCELERATOR: Final = "throughput_token_per_s_per_accelerator"
"""Cell that a builder may give instead of the whole throughput."""

CAPACITY_SLACK: Final = 1.02
"""Sources differ in what they call a gigabyte; a reading above this share of the memory is impossible."""

FLOP_SLACK: Final = 2.0
"""Sources count the FLOP of a token by formulas of their own, the most generous nearly twice the plain one."""

Cells = dict[str, object]


@dataclass(frozen=True)
class SourceRow:
    """One run as the source tells it: the cells of a training row, names still as printed."""

    reference: str
    cells: Cells


@dataclass(frozen=True)
class RejectedRow:
    """A published row that is no measurement for the table, with the rule that says so."""

    reference: str
    reason: str
    detail: str


class _RejectionError(Exception):
    """A rule sets the candidate aside."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


def build(
    campaign: str, n_read: int, found: Iterable[SourceRow | RejectedRow], rtol: float = PRINTED_RTOL
) -> BuildResult:
    """Return the campaign made of the candidates that every rule lets pass.

    The rules, in their order: `unknown_model` and `unknown_accelerator` if the catalogue has no such name;
    `no_outcome` if nothing was measured; `impossible_split` if the parallel sizes do not divide the accelerators, or
    are all known and their product is not the accelerators;
    `inconsistent` if throughput contradicts batch and step time, or FLOP/s; `above_peak` and `above_capacity` if the
    accelerator cannot do that; `duplicate` if an earlier revision of the source says the same.

    A micro batch and an accumulation that cannot both be are left blank in a row that is kept, and its note says so.

    Parameters
    ----------
    campaign
        Its name.
    n_read
        Published rows that were read.
    found
        What a builder made of them.
    rtol
        How far the outcomes of duplicates may lie apart.
    """
    catalog = training_catalog()
    passed: list[SourceRow] = []
    aside: list[RejectedRow] = []
    for item in found:
        if isinstance(item, RejectedRow):
            aside.append(item)
            continue
        try:
            passed.append(SourceRow(item.reference, _checked(item.cells, catalog)))
        except _RejectionError as reason:
            aside.append(RejectedRow(item.reference, reason.reason, reason.detail))
    kept, twins = merge_duplicates({item.reference: item.cells for item in passed}, rtol)
    aside += [RejectedRow(twin, "duplicate", f"the same as {original}") for twin, original in twins.items()]
    table = pd.DataFrame([cells | {"campaign": campaign} for cells in kept.values()])
    rejected = pd.DataFrame([(a.reference, a.reason, a.detail) for a in aside], columns=list(QUARANTINE_COLUMNS))
    return BuildResult(validate_training_measurements(table, campaign), n_read, rejected)


def _checked(given: Mapping[str, object], catalog: Catalog) -> Cells:
    cells = {name: value for name, value in given.items() if value not in {None, ""}}
    model = _model(str(cells.get("model", "")), catalog)
    cells["model"] = model.id
    accelerator = _accelerator(str(cells.get("accelerator", "")), catalog)
    cells["accelerator"] = accelerator.id
    if "n_accelerator" not in cells:
        raise _RejectionError("unknown_accelerator", "the number of accelerators is not given")
    if PER_ACCELERATOR in cells:
        cells["throughput_token_per_s"] = _rounded(_float(cells.pop(PER_ACCELERATOR)) * _n(cells, "n_accelerator"))
    if not any(name in cells for name in TRAINING_OUTCOME_COLUMNS) and cells.get("status", "ok") == "ok":
        raise _RejectionError("no_outcome", "the row holds no measured value")
    _check_split(cells)
    _settle_accumulation(cells)
    _derive(cells)
    _check_plausible(cells, model, accelerator)
    return cells


def _model(name: str, catalog: Catalog) -> ModelSpec:
    try:
        return catalog.model(MODEL_NAMES.get(name.casefold(), name))
    except UnknownNameError:
        raise _RejectionError("unknown_model", name[:200] or "no model is named") from None


def _accelerator(name: str, catalog: Catalog) -> AcceleratorSpec:
    try:
        return catalog.accelerator(ACCELERATOR_NAMES.get(name.casefold(), name))
    except UnknownNameError:
        raise _RejectionError("unknown_accelerator", name[:200] or "no accelerator is named") from None


def _check_split(cells: Cells) -> None:
    n_accelerator = _n(cells, "n_accelerator")
    n_split = _n(cells, "tp") * _n(cells, "pp") * _n(cells, "cp")
    if n_accelerator % n_split:
        detail = f"tp x pp x cp = {n_split:g} does not divide {n_accelerator:g} accelerators"
        raise _RejectionError("impossible_split", detail)
    n_whole = n_split * _n(cells, "dp")
    if n_accelerator % n_whole or (cells.keys() >= {"tp", "pp", "dp"} and n_accelerator != n_whole):
        detail = f"tp x pp x cp x dp = {n_whole:g}, the accelerators are {n_accelerator:g}"
        raise _RejectionError("impossible_split", detail)


def _settle_accumulation(cells: Cells) -> None:
    """Leave micro batch and accumulation blank if they do not make up the global batch: one is wrong, which is open.

    Sources round the accumulation up where the last micro batch is not full.
    """
    names = ("n_global_batch_sequence", "n_micro_batch_sequence", "n_gradient_accumulation")
    if any(name not in cells for name in names):
        return
    whole, micro, printed = (_n(cells, name) for name in names)
    n_split = _n(cells, "tp") * _n(cells, "pp") * _n(cells, "cp")
    n_replica = _n(cells, "dp") if "dp" in cells else _n(cells, "n_accelerator") / n_split
    n_pass = math.ceil(whole / (micro * n_replica))
    if printed != n_pass:
        told = f"printed micro batch {micro:g} and accumulation {printed:g} contradict: {n_pass} would make the batch"
        del cells["n_micro_batch_sequence"], cells["n_gradient_accumulation"]
        cells["note"] = "; ".join(filter(None, (str(cells.get("note", "")), told)))


def _derive(cells: Cells) -> None:
    """Fill throughput from step time or the reverse; set the row aside if both are given and disagree."""
    if "n_global_batch_sequence" not in cells or "n_token_per_sequence" not in cells:
        return
    n_token = _n(cells, "n_global_batch_sequence") * _n(cells, "n_token_per_sequence")
    step, throughput = cells.get("step_time_s"), cells.get("throughput_token_per_s")
    if step is not None and throughput is not None:
        ratio = _float(step) * _float(throughput) / n_token
        if abs(ratio - 1.0) > STEP_RTOL:
            raise _RejectionError("inconsistent", f"throughput x step time is {ratio:.3g} of the global batch")
    elif step is not None:
        cells |= {"throughput_token_per_s": _rounded(n_token / _float(step)), "derived": "throughput_token_per_s"}
    elif throughput is not None:
        cells |= {"step_time_s": _rounded(n_token / _float(throughput)), "derived": "step_time_s"}


def _check_plausible(cells: Cells, model: ModelSpec, accelerator: AcceleratorSpec) -> None:
    peaks = {name: rate for name, rate in accelerator.peak_flop_per_s.items() if not name.startswith("int")}
    peak = next((rate for name, rate in peaks.items() if name == cells.get("compute_precision")), max(peaks.values()))
    for name in ("model_flop_per_s_per_accelerator", "hardware_flop_per_s_per_accelerator"):
        if _float(cells.get(name, 0.0)) > peak:
            raise _RejectionError("above_peak", f"{name} is {_float(cells[name]):g}, the peak {peak:g}")
    for name in ("mfu_ratio", "hfu_ratio"):
        if _float(cells.get(name, 0.0)) > 1.0:
            raise _RejectionError("above_peak", f"{name} is {_float(cells[name]):g}")
    least = _least_flop_per_token(model, str(cells.get("method", ""))) * _float(
        cells.get("throughput_token_per_s", 0)
    )
    if least > peak * _n(cells, "n_accelerator"):
        raise _RejectionError("above_peak", f"the tokens need {least:g} FLOP/s, the peak is {peak:g} per accelerator")
    _check_flop_per_token(cells, model)
    used = _float(cells.get("memory_byte_per_accelerator", 0.0))
    if used > accelerator.memory_byte * CAPACITY_SLACK:
        raise _RejectionError("above_capacity", f"{used:g} bytes of {accelerator.memory_byte:g}")


def _check_flop_per_token(cells: Cells, model: ModelSpec) -> None:
    """Set the row aside if its FLOP/s and tokens/s are not of one run: more FLOP for a token than there are to do."""
    rate, throughput = cells.get("model_flop_per_s_per_accelerator"), cells.get("throughput_token_per_s")
    length = _float(cells.get("n_token_per_sequence", 0.0))
    if rate is None or throughput is None or not length:
        return
    attention = 12.0 * model.n_layer * model.n_head * model.head_dim * length
    most = FLOP_SLACK * (6.0 * (model.n_param_active - model.n_param_lookup) + attention)
    published = _float(rate) * _n(cells, "n_accelerator") / _float(throughput)
    if published > most:
        raise _RejectionError("inconsistent", f"{published:.3g} FLOP for a token, {most:.3g} at most")


def _least_flop_per_token(model: ModelSpec, method: str) -> float:
    """Return 2 FLOP forward and 2 back for each weight that is no table, and 2 more where its gradient is needed.

    Attention between tokens comes on top. Adapters other than LoRA may sit in the last layers only, so that little
    goes back.
    """
    n_weight = model.n_param_active - model.n_param_lookup - model.vocab_size * model.hidden_size
    return {"lora": 4.0, "qlora": 4.0, "adapter": 2.0}.get(method, 6.0) * max(n_weight, 0)


def _n(cells: Mapping[str, object], name: str) -> float:
    return _float(cells.get(name, 1.0))


def _float(value: object) -> float:
    return float(str(value))


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
