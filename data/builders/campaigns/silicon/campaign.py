"""The campaign of `silicon_sample.csv`: InferenceX and laboratory runs, repaired by written rules.

`silicon_source` takes the rows apart, `silicon_geometry` repairs devices and load, `silicon_history` and
`silicon_speculation` tell multi-token prediction from the public configurations, `silicon_settings` looks server
settings up in the launch scripts (`silicon_scripts`), `silicon_faults` marks what is broken or a copy, and
`silicon_index` ships what became of each published row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from builders.campaigns.built import Built
from builders.campaigns.silicon.faults import fault_of, originals_of
from builders.campaigns.silicon.geometry import Geometry, concurrency_of, geometry_of, lengths_of, n_replica_of
from builders.campaigns.silicon.history import History, load_history
from builders.campaigns.silicon.settings import settings_of
from builders.campaigns.silicon.source import SourceRow, load_source_rows
from builders.campaigns.silicon.speculation import Mtp, mtp_of
from builders.quarantine import QUARANTINE_COLUMNS
from roofcast.data.catalog import load_catalog
from roofcast.data.importers.inferencemax.vocabulary import LENGTH_VARIATION, REQUESTS_PER_PLACE
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.units import s_from_ms

SAMPLE: Final = "raw/aiconfigurator/silicon_sample.csv"
HISTORY: Final = "silicon/inferencex_configurations.csv"
DIGITS: Final = 6

INFERENCEX_DEEPSEEK: Final = "deepseek-ai/DeepSeek-R1-0528"
"""What InferenceX serves under the keys ``dsr1-*``, whether a row says R1 or V3."""

UNSTATED_PRECISION: Final = "bf16"
"""Rows without a precision are checkpoints in bf16, served as they are."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of one published row.

    Parameters
    ----------
    row
        As published.
    original
        Number of the row that stands for its measurement; its own unless it is a copy.
    geometry
        Where it ran; None if the source does not say.
    mtp, fault
        Whether it ran with multi-token prediction, and the rule that marks it as faulty.
    version
        Engine version of the row, or of the public configuration of its day.
    """

    row: SourceRow
    original: int
    geometry: Geometry | None
    mtp: Mtp
    fault: str
    version: str

    @property
    def set_aside(self) -> str:
        """Why it is no measurement of its own; empty if it is one."""
        if self.original != self.row.number:
            return "duplicate"
        return "" if self.geometry else "worker_count_unknown"


def build_silicon(root: Path) -> Built:
    """Return the campaign built from the files under `root`, one row for each distinct measurement."""
    verdicts = judge(load_source_rows(root / SAMPLE), load_history(root / HISTORY))
    records = [_record(v, v.geometry) for v in verdicts if v.geometry and not v.set_aside]
    rows = validate_measurements(pd.DataFrame(records), Path(SAMPLE).name)
    return Built(rows, n_read=len(verdicts), quarantined=_quarantine(verdicts))


def judge(rows: Sequence[SourceRow], history: History) -> list[Verdict]:
    """Return the verdict on each row, in their order."""
    originals, mtp = originals_of(rows), mtp_of(rows, history)
    return [
        Verdict(
            row=row,
            original=originals[row.number],
            geometry=geometry_of(row, history),
            mtp=mtp[row.number],
            fault=fault_of(row, history),
            version=row.cells["backend_version"] or (history.version(row) if row.is_inferencex else ""),
        )
        for row in rows
    ]


def model_of(row: SourceRow) -> str:
    """Return the catalogue's id of the model that was served.

    Raises
    ------
    UnknownNameError
        If the catalogue has no such model.

    Examples
    --------
    >>> model_of(SourceRow(1, "dump", {"model_path": "deepseek-ai/DeepSeek-V3"}))
    'deepseek-ai/DeepSeek-R1-0528'
    """
    path = row.cells["model_path"]
    if row.is_inferencex and path.startswith("deepseek-ai/"):
        path = INFERENCEX_DEEPSEEK
    return load_catalog().model(path).id


def output_throughput(n_output: float, concurrency: float, ttft_s: float, tpot_s: float) -> float:
    """Return output tokens per second of a closed loop: each request is replaced as soon as it ends.

    Examples
    --------
    >>> output_throughput(101, 4, 1.0, 0.01)
    202.0
    """
    return concurrency * n_output / (ttft_s + (n_output - 1) * tpot_s)


def _record(verdict: Verdict, geometry: Geometry) -> dict[str, Any]:
    row, cells = verdict.row, verdict.row.cells
    n_input, n_output = lengths_of(row)
    concurrency = concurrency_of(row, geometry)
    ttft, tpot = (s_from_ms(float(cells[name])) for name in ("silicon_ttft_ms", "silicon_tpot_ms"))
    model = model_of(row)
    is_moe = load_catalog().model(model).n_expert > 0
    return {
        "model": model,
        "accelerator": load_catalog().accelerator(cells["system"]).id,
        "n_accelerator": geometry.n_accelerator,
        "engine": cells["backend"],
        "engine_version": verdict.version,
        "weight_precision": cells["precision"] or UNSTATED_PRECISION,
        "tp": geometry.tp,
        "pp": 1 if geometry.tp else None,
        "dp": geometry.dp,
        "ep": geometry.ep,
        "n_input_token": n_input,
        "n_output_token": n_output,
        "concurrency": concurrency,
        "statistic": "mean",
        "ttft_s": _rounded(ttft),
        "tpot_s": _rounded(tpot),
        "output_throughput_token_per_s": _rounded(output_throughput(n_output, concurrency, ttft, tpot)),
        "load": "closed_loop",
        "length_variation": LENGTH_VARIATION if row.is_inferencex else 0.0,
        "n_request": REQUESTS_PER_PLACE * concurrency if row.is_inferencex and not row.is_disaggregated else None,
        "moe_tp": geometry.moe_tp if is_moe else None,
        "n_prefill_accelerator": geometry.n_prefill,
        "n_decode_accelerator": geometry.n_decode,
        "speculation": "mtp" if verdict.mtp == "yes" else "",
        **settings_of(row, geometry, verdict.mtp),
        "date": str(row.date or ""),
        "software": row.image,
        "derived": "output_throughput_token_per_s",
        "campaign": "silicon",
        "note": note_of(verdict),
    }


def note_of(verdict: Verdict) -> str:
    """Return the note of a measurement: its row in the source, by which `rows_index.csv` joins, then remarks."""
    row, geometry = verdict.row, verdict.geometry
    n_replica = n_replica_of(row, geometry) if geometry else 1
    remarks = {
        f"faulty: {verdict.fault}": bool(verdict.fault),
        "mtp unsure": verdict.mtp == "unsure" and not row.is_disaggregated,
        f"one of {n_replica} replicas": n_replica > 1,
        geometry.split if geometry else "": bool(geometry and geometry.split),
    }
    return "; ".join([f"row {row.number}", *(text for text, holds in remarks.items() if holds)])


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _quarantine(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    details: Mapping[str, str] = {
        "worker_count_unknown": "numbers of prefill and decode workers are not given, and no configuration tells them"
    }
    records = [
        (v.row.id, v.set_aside, details.get(v.set_aside, f"the measurement of row {v.original}"))
        for v in verdicts
        if v.set_aside
    ]
    return pd.DataFrame(records, columns=list(QUARANTINE_COLUMNS))
