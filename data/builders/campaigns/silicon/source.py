"""Rows of `silicon_sample.csv` as published, with what their ids and sources say taken apart."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.data.errors import SchemaError

NEEDED: Final = (
    "id", "silicon_data_source", "backend", "backend_version", "model_path", "system", "precision", "mode", "isl",
    "osl", "batch_size", "tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size", "prefill_num_workers",
    "prefill_tp_size", "prefill_attention_dp_size", "decode_batch_size", "decode_num_workers", "decode_tp_size",
    "decode_attention_dp_size", "decode_moe_ep_size", "silicon_ttft_ms", "silicon_tpot_ms",
)  # fmt: skip

_LABEL: Final = re.compile(r"_tp(\d+)(?:_0)?_ep(\d+)(?:_0)?_\d+$")
_IMAGE: Final = re.compile(r"(?:image=|workflow_run_id=\d+; )([^;]+)")


@dataclasses.dataclass(frozen=True)
class SourceRow:
    """One published row.

    Parameters
    ----------
    number
        Its place in the file, from 1.
    origin
        ``dump``, a table of InferenceX (``2026-03-25.csv``, ``2026-04-06.csv``), ``gap`` for model-wise copies of
        such tables, or ``lab`` for runs that are not InferenceX's.
    cells
        The columns as published; blank where blank.
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
        """Whether InferenceX measured it; its request lengths are drawn from 0.8 to 1 times the nominal ones."""
        return self.origin != "lab"

    @property
    def is_disaggregated(self) -> bool:
        """Whether the row says that prefill and decode ran on different workers."""
        return self.cells["mode"] == "disagg"

    @property
    def concurrency(self) -> int | None:
        """Requests in flight as the source states them."""
        return self._number(r"silicon_concurrency=(\d+)")

    @property
    def config_id(self) -> int | None:
        """InferenceX's number of the configuration, in its database dump alone."""
        return self._number(r"config_id=(\d+)")

    @property
    def date(self) -> dt.date | None:
        """Day of the measurement."""
        found = re.search(r"measured=(\d{4}-\d\d-\d\d)", self.cells["silicon_data_source"])
        return dt.date.fromisoformat(found[1]) if found else None

    @property
    def image(self) -> str:
        """Container image, written with slashes alone; empty if the row names none."""
        found = _IMAGE.search(self.cells["silicon_data_source"])
        return found[1].replace("#", "/") if found else ""

    @property
    def label(self) -> tuple[int, int] | None:
        """Tensor and expert parallelism as written into the id; None where the id holds neither."""
        found = _LABEL.search(self.id)
        return (int(found[1]), int(found[2])) if found else None

    @property
    def measurement(self) -> tuple[str, ...]:
        """What two copies of one measurement share; some tables keep two decimals alone."""
        names = ("system", "backend", "mode", "precision", "isl", "osl")
        latencies = (f"{float(self.cells[name]):.2f}" for name in ("silicon_ttft_ms", "silicon_tpot_ms"))
        return (*(self.cells[name] for name in names), *latencies, str(self.concurrency))

    def count(self, name: str) -> int:
        """Return a count; 0 where it is blank or the placeholder 0."""
        return int(float(self.cells[name] or 0))

    def _number(self, pattern: str) -> int | None:
        found = re.search(pattern, self.cells["silicon_data_source"])
        return int(found[1]) if found else None


def load_source_rows(file: Path) -> list[SourceRow]:
    """Return the published rows in the order of the file.

    Raises
    ------
    SchemaError
        If a column is missing.
    """
    table = pd.read_csv(file, dtype=str, keep_default_na=False)
    for name in NEEDED:
        if name not in table.columns:
            raise SchemaError(name, "no such column: this is no silicon sample", file.name, 1)
    records = table.to_dict("records")
    return [
        SourceRow(number, _origin(str(cells["silicon_data_source"])), {str(k): str(v) for k, v in cells.items()})
        for number, cells in enumerate(records, start=1)
    ]


def _origin(source: str) -> str:
    if source.startswith("db-dump/"):
        return "dump"
    found = re.match(r"source_file=(\d{4}-\d\d-\d\d\.csv);", source)
    if found:
        return found[1]
    return "gap" if re.match(r"source_file=[\w.-]+-gap-analysis\.csv;", source) else "lab"
