"""Rows of `silicon_sample.csv`, with ids and source texts parsed."""

import dataclasses
import datetime as dt
import re
from collections.abc import Mapping
from typing import Final

from builders.published import Record

_LABEL: Final = re.compile(r"_tp(\d+)(?:_0)?_ep(\d+)(?:_0)?_\d+$")
_IMAGE: Final = re.compile(r"(?:image=|workflow_run_id=\d+; )([^;]+)")


@dataclasses.dataclass(frozen=True)
class SourceRow:
    """One published row.

    - `number`: 1-based position in the file.
    - `origin`: ``dump``, a table of InferenceX (``2026-03-25.csv``, ``2026-04-06.csv``), ``gap`` for copies of such
      tables by model, or ``lab`` for runs outside InferenceX.
    - `cells`: Published text by column.
    """

    number: int
    origin: str
    cells: Mapping[str, str]

    @property
    def id(self) -> str:
        """The published id."""
        return self.cells["id"]

    @property
    def is_inferencex(self) -> bool:
        """Whether InferenceX measured the row; its request lengths are 0.8 to 1 times the nominal ones."""
        return self.origin != "lab"

    @property
    def is_disaggregated(self) -> bool:
        """Whether prefill and decode ran on different workers."""
        return self.cells["mode"] == "disagg"

    @property
    def concurrency(self) -> int | None:
        """Stated number of requests in flight."""
        return self._number(r"silicon_concurrency=(\d+)")

    @property
    def config_id(self) -> int | None:
        """InferenceX's configuration number; only rows of the database dump have one."""
        return self._number(r"config_id=(\d+)")

    @property
    def date(self) -> dt.date | None:
        """Day of the measurement."""
        match = re.search(r"measured=(\d{4}-\d\d-\d\d)", self.cells["silicon_data_source"])
        return dt.date.fromisoformat(match[1]) if match else None

    @property
    def image(self) -> str:
        """Container image with slashes as separators; empty if the row names none."""
        match = _IMAGE.search(self.cells["silicon_data_source"])
        return match[1].replace("#", "/") if match else ""

    @property
    def label(self) -> tuple[int, int] | None:
        """Tensor and expert parallelism in the id; None if the id holds neither."""
        match = _LABEL.search(self.id)
        return (int(match[1]), int(match[2])) if match else None

    @property
    def measurement(self) -> tuple[str, ...]:
        """Key shared by copies of one measurement; latencies have two decimals, as some tables print no more."""
        names = ("system", "backend", "mode", "precision", "isl", "osl")
        latencies = (f"{float(self.cells[name]):.2f}" for name in ("silicon_ttft_ms", "silicon_tpot_ms"))
        return (*(self.cells[name] for name in names), *latencies, str(self.concurrency))

    def count(self, name: str) -> int:
        """Return a count; 0 if the cell is blank."""
        return int(float(self.cells[name] or 0))

    def _number(self, pattern: str) -> int | None:
        match = re.search(pattern, self.cells["silicon_data_source"])
        return int(match[1]) if match else None


def source_row(record: Record) -> SourceRow:
    """Return the row of a published record of the sample."""
    return SourceRow(record.cells["@row"], _origin(record.cells["silicon_data_source"]), record.cells)


def _origin(source: str) -> str:
    if source.startswith("db-dump/"):
        return "dump"
    match = re.match(r"source_file=(\d{4}-\d\d-\d\d\.csv);", source)
    if match:
        return match[1]
    return "gap" if re.match(r"source_file=[\w.-]+-gap-analysis\.csv;", source) else "lab"
