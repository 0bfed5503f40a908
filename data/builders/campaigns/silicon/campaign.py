"""The campaign of `silicon_sample.csv`: InferenceX and laboratory runs, repaired by written rules.

`source` parses the rows, `geometry` repairs devices and load, `history` and `speculation` derive multi-token
prediction from the public configurations, `settings` looks up server settings in the launch scripts (`scripts`),
`faults` marks faulty rows and copies, and `index` writes the outcome of each published row.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, Final

from builders.campaigns.silicon.faults import fault_of, originals_of
from builders.campaigns.silicon.geometry import Geometry, concurrency_of, geometry_of, lengths_of, n_replica_of
from builders.campaigns.silicon.history import history_of
from builders.campaigns.silicon.settings import settings_of
from builders.campaigns.silicon.source import SourceRow, source_row
from builders.campaigns.silicon.speculation import Mtp, mtp_of
from builders.published import Cells, Record
from builders.recipe import Row
from roofcast.data.catalog import load_catalog
from roofcast.data.importers.inferencemax import LENGTH_VARIATION, REQUESTS_PER_SLOT

INFERENCEX_DEEPSEEK: Final = "deepseek-ai/DeepSeek-R1-0528"
"""Model that InferenceX serves under the keys ``dsr1-*``, whether a row says R1 or V3."""


@dataclasses.dataclass(frozen=True)
class ResolvedRow:
    """Published row with the results of all repair rules.

    - `original`: Number of the row that represents the measurement; the row's own number unless it is a copy.
    - `geometry`: Devices and parallelism; None if the source does not state them.
    - `mtp`, `fault`: Whether it ran with multi-token prediction, and the rule that marks it as faulty.
    - `version`: Engine version of the row, or of the public configuration on its day.
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


def records(published: Iterable[Record]) -> Iterator[Record]:
    """Yield each published row with the results of all repair rules."""
    for item in resolve_rows(published):
        yield Record(item.row.id, {**item.row.cells, **_resolved_cells(item)})


def rows(cells: Cells, common: Row) -> list[Row]:
    """Return the throughput of a closed loop without idle slots."""
    n_output, ttft_s, tpot_s = (common[name] for name in ("n_output_token", "ttft_s", "tpot_s"))
    return [{"output_throughput_token_per_s": cells["concurrency"] * n_output / (ttft_s + (n_output - 1) * tpot_s)}]


def resolve_rows(published: Iterable[Record]) -> list[ResolvedRow]:
    """Apply every repair rule to each row of the sample; the order stays."""
    every = list(published)
    sample = [record for record in every if record.cells["@file"] == "silicon_sample.csv"]
    history = history_of([record.columns for record in every if record.cells["@file"] != "silicon_sample.csv"])
    rows = [source_row(record) for record in sample]
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

    Raises `UnknownNameError` if the catalogue has no such model.

    Examples
    --------
    >>> model_of(SourceRow(1, "dump", {"model_path": "deepseek-ai/DeepSeek-V3"}))
    'deepseek-ai/DeepSeek-R1-0528'
    """
    path = row.cells["model_path"]
    if row.is_inferencex and path.startswith("deepseek-ai/"):
        path = INFERENCEX_DEEPSEEK
    return load_catalog().model(path).id


def _resolved_cells(item: ResolvedRow) -> dict[str, Any]:
    row, geometry = item.row, item.geometry
    cells: dict[str, Any] = {
        "is_copy": item.original != row.number, "original": item.original, "n_accelerator": "",
    }  # fmt: skip
    if geometry is None:
        return cells
    concurrency, (n_input, n_output) = concurrency_of(row, geometry), lengths_of(row)
    model = model_of(row)
    is_moe = load_catalog().model(model).n_expert > 0
    has_slots = row.is_inferencex and not row.is_disaggregated
    return cells | dataclasses.asdict(geometry) | {
        "model": model, "version": item.version, "moe_tp": geometry.moe_tp if is_moe else None, "n_input": n_input,
        "n_output": n_output, "concurrency": concurrency, "mtp": item.mtp, "image": row.image,
        "length_variation": LENGTH_VARIATION if row.is_inferencex else 0.0,
        "n_request": REQUESTS_PER_SLOT * concurrency if has_slots else None,
        "settings": settings_of(row, geometry, item.mtp), "day": str(row.date or ""), "note": note_of(item),
    }  # fmt: skip


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
