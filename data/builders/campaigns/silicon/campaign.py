"""The campaign of `silicon_sample.csv`: InferenceX and laboratory runs, repaired by written rules.

`source` parses the rows, `geometry` repairs devices and load, `history` and `speculation` derive multi-token
prediction from the public configurations, `settings` looks up server settings in the launch scripts (`scripts`),
`faults` marks faulty rows and copies, and `index` writes the outcome of each published row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import round_figure
from builders.campaigns.silicon.faults import fault_of, originals_of
from builders.campaigns.silicon.geometry import Geometry, concurrency_of, geometry_of, lengths_of, n_replica_of
from builders.campaigns.silicon.history import History, load_history
from builders.campaigns.silicon.settings import settings_of
from builders.campaigns.silicon.source import SourceRow, load_source_rows
from builders.campaigns.silicon.speculation import Mtp, mtp_of
from builders.rejected_rows import REJECTED_COLUMNS
from roofcast.data.catalog import load_catalog
from roofcast.data.importers.inferencemax.vocabulary import LENGTH_VARIATION, REQUESTS_PER_SLOT
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.units import s_from_ms

SAMPLE: Final = "raw/aiconfigurator/silicon_sample.csv"
HISTORY: Final = "silicon/inferencex_configurations.csv"

INFERENCEX_DEEPSEEK: Final = "deepseek-ai/DeepSeek-R1-0528"
"""Model that InferenceX serves under the keys ``dsr1-*``, whether a row says R1 or V3."""

UNSTATED_PRECISION: Final = "bf16"
"""Precision of rows that state none: unquantised bf16 checkpoints."""


@dataclasses.dataclass(frozen=True)
class ResolvedRow:
    """Published row with the results of all repair rules.

    Parameters
    ----------
    original
        Number of the row that represents the measurement; the row's own number unless it is a copy.
    geometry
        Devices and parallelism; None if the source does not state them.
    mtp, fault
        Whether it ran with multi-token prediction, and the rule that marks it as faulty.
    version
        Engine version of the row, or of the public configuration on its day.
    """

    row: SourceRow
    original: int
    geometry: Geometry | None
    mtp: Mtp
    fault: str
    version: str

    @property
    def rejection(self) -> str:
        """Reason why the row is not a measurement of its own; empty if it is one."""
        if self.original != self.row.number:
            return "duplicate"
        return "" if self.geometry else "worker_count_unknown"


def build_silicon(root: Path) -> BuildResult:
    """Build the campaign from the files under `root`: one row per distinct measurement."""
    resolved = resolve_rows(load_source_rows(root / SAMPLE), load_history(root / HISTORY))
    records = [_record(v, v.geometry) for v in resolved if v.geometry and not v.rejection]
    rows = validate_measurements(pd.DataFrame(records), Path(SAMPLE).name)
    return BuildResult(rows, n_read=len(resolved), rejected=_rejected_rows(resolved))


def resolve_rows(rows: Sequence[SourceRow], history: History) -> list[ResolvedRow]:
    """Apply every repair rule to each row; the order stays."""
    originals, mtp = originals_of(rows), mtp_of(rows, history)
    return [
        ResolvedRow(
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
    """Return the catalogue id of the served model.

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
    """Return output tokens per second of a closed loop without idle slots.

    Examples
    --------
    >>> output_throughput(101, 4, 1.0, 0.01)
    202.0
    """
    return concurrency * n_output / (ttft_s + (n_output - 1) * tpot_s)


def _record(item: ResolvedRow, geometry: Geometry) -> dict[str, Any]:
    row, cells = item.row, item.row.cells
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
        "engine_version": item.version,
        "weight_precision": cells["precision"] or UNSTATED_PRECISION,
        "tp": geometry.tp,
        "pp": 1 if geometry.tp else None,
        "dp": geometry.dp,
        "ep": geometry.ep,
        "n_input_token": n_input,
        "n_output_token": n_output,
        "concurrency": concurrency,
        "statistic": "mean",
        "ttft_s": round_figure(ttft),
        "tpot_s": round_figure(tpot),
        "output_throughput_token_per_s": round_figure(output_throughput(n_output, concurrency, ttft, tpot)),
        "load": "closed_loop",
        "length_variation": LENGTH_VARIATION if row.is_inferencex else 0.0,
        "n_request": REQUESTS_PER_SLOT * concurrency if row.is_inferencex and not row.is_disaggregated else None,
        "moe_tp": geometry.moe_tp if is_moe else None,
        "n_prefill_accelerator": geometry.n_prefill,
        "n_decode_accelerator": geometry.n_decode,
        "speculation": "mtp" if item.mtp == "yes" else "",
        **settings_of(row, geometry, item.mtp),
        "date": str(row.date or ""),
        "software": row.image,
        "derived": "output_throughput_token_per_s",
        "campaign": "silicon",
        "stack": "inferencex",
        "note": note_of(item),
    }


def note_of(item: ResolvedRow) -> str:
    """Return the note of a measurement: the source row number (key of `rows_index.csv`), then remarks."""
    row, geometry = item.row, item.geometry
    n_replica = n_replica_of(row, geometry) if geometry else 1
    remarks = {
        f"faulty: {item.fault}": bool(item.fault),
        "mtp unsure": item.mtp == "unsure" and not row.is_disaggregated,
        f"one of {n_replica} replicas": n_replica > 1,
        geometry.split if geometry else "": bool(geometry and geometry.split),
    }
    return "; ".join([f"row {row.number}", *(text for text, holds in remarks.items() if holds)])


def _rejected_rows(resolved: Sequence[ResolvedRow]) -> pd.DataFrame:
    details: Mapping[str, str] = {
        "worker_count_unknown": "numbers of prefill and decode workers are not given, and no configuration tells them"
    }
    records = [
        (v.row.id, v.rejection, details.get(v.rejection, f"the measurement of row {v.original}"))
        for v in resolved
        if v.rejection
    ]
    return pd.DataFrame(records, columns=list(REJECTED_COLUMNS))
