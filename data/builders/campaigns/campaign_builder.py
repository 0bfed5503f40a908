"""Builder of a campaign: resolves catalogue names, rounds figures, and lists rejected rows."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from builders.campaigns.build_result import BuildResult
from builders.figures import number_of, round_figure
from builders.rejected_rows import REJECTED_COLUMNS
from roofcast.data.catalog import load_catalog
from roofcast.data.errors import SchemaError, UnknownNameError
from roofcast.data.importers.run_plausibility import check_plausible
from roofcast.data.measurements.schema import NUMBER_COLUMNS, OUTCOME_COLUMNS
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.specs import BYTE_PER_WEIGHT, STATISTICS, AcceleratorSpec, ModelSpec

__all__ = [
    "CampaignBuilder",
    "Row",
    "contradiction_of",
    "number_of",
    "records_of",
    "round_figure",
    "rows_by_statistic",
    "weight_read_s",
]

Row = dict[str, object]
"""Columns of the measurement table by name; all cells of a published row are text."""


class CampaignBuilder:
    """Accumulates the rows of one campaign while its files are read.

    Parameters
    ----------
    campaign
        Name of the campaign.
    models, accelerators
        Source names mapped to catalogue names; an empty string means that the catalogue has no entry.
    stack
        Stack of rows that name none; the campaign's name by default.
    """

    def __init__(
        self,
        campaign: str,
        models: Mapping[str, str] | None = None,
        accelerators: Mapping[str, str] | None = None,
        stack: str = "",
    ) -> None:
        self.campaign = campaign
        self._stack = stack or campaign
        self._models = dict(models or {})
        self._accelerators = dict(accelerators or {})
        self._rows: list[Row] = []
        self._rejected: list[tuple[str, str, str]] = []
        self._n_read = 0
        self._seen: set[tuple[object, ...]] = set()

    def is_new(self, *run: object) -> bool:
        """Return whether this run key is new, and remember it; a nan makes every key new."""
        n_seen = len(self._seen)
        self._seen.add(run)
        return len(self._seen) > n_seen

    def add(self, reference: str, rows: Iterable[Row], n_published: int = 1) -> None:
        """Add the rows of one published row, or of several that belong together, unless a rule rejects them.

        Rules: ``unknown_model``, ``unknown_accelerator``, ``no_outcome``, ``implausible`` (the importers' rules, see
        `contradiction_of`) and ``exact_repeat``.

        Parameters
        ----------
        reference
            Identifier of the published row in its source.
        rows
            One row per statistic, with the source's names of model and accelerator.
        n_published
            Number of published rows that they come from.
        """
        catalog = load_catalog()
        resolved: list[Row] = []
        for row in rows:
            theirs = {name: str(row.get(name, "")) for name in ("model", "accelerator")}
            model = self._models.get(theirs["model"], theirs["model"])
            accelerator = self._accelerators.get(theirs["accelerator"], theirs["accelerator"])
            try:
                ids = {"model": catalog.model(model).id}
                ids["accelerator"] = catalog.accelerator(accelerator).id
            except UnknownNameError as error:
                detail = theirs[error.field] or "not stated"
                self.reject(reference, f"unknown_{error.field}", detail, n_published)
                return
            resolved.append({"stack": self._stack, **row, **ids, "campaign": self.campaign})
        if not resolved:
            self.reject(reference, "no_outcome", "the row holds no figure", n_published)
            return
        contradiction = contradiction_of(resolved)
        if contradiction:
            self.reject(reference, "implausible", contradiction, n_published)
            return
        rows = [{name: _stored_value(name, value) for name, value in row.items()} for row in resolved]
        if not self.is_new("row", *(repr(sorted(row.items())) for row in rows)):
            self.reject(reference, "exact_repeat", "the same run to the last digit", n_published)
            return
        self._n_read += n_published
        self._rows += rows

    def reject(self, reference: str, reason: str, detail: str, n_published: int = 1) -> None:
        """Reject a published row under the short name of a rule, with a detail."""
        self._n_read += n_published
        self._rejected += [(reference, reason, detail)] * n_published

    def build(self) -> BuildResult:
        """Validate the rows and return the campaign.

        Raises
        ------
        SchemaError
            If a row breaks the schema.
        """
        rows = validate_measurements(pd.DataFrame(self._rows), self.campaign)
        rejected = pd.DataFrame(self._rejected, columns=list(REJECTED_COLUMNS), dtype=str)
        return BuildResult(rows, self._n_read, rejected)


def contradiction_of(rows: Iterable[Row]) -> str:
    """Return the contradiction between the numbers of a run, by the importers' rules; empty if there is none.

    Parameters
    ----------
    rows
        Rows of one or several runs, one per statistic; rows that differ only in outcomes and statistic are one run.

    Examples
    --------
    >>> contradiction_of([{"ttft_s": 1.0, "tpot_s": 20.0, "e2e_s": 3.0, "n_output_token": 100}])[:55]
    'E2E of 3 s is far from TTFT + TPOT x (output tokens - 1'
    """
    runs: dict[str, tuple[Row, dict[str, Mapping[str, float]]]] = {}
    for row in rows:
        cells = {name: value for name, value in row.items() if name not in OUTCOME_COLUMNS and name != "statistic"}
        outcomes = {name: float(str(value)) for name, value in row.items() if _is_figure(name, value)}
        runs.setdefault(repr(sorted(cells.items())), (cells, {}))[1][str(row.get("statistic", "mean"))] = outcomes
    for cells, statistics in runs.values():
        try:
            check_plausible(cells, statistics, "")
        except SchemaError as error:
            return error.problem
    return ""


def records_of(file: Path, encoding: str = "utf-8-sig") -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a CSV file with the reference ``name:line``; blank lines are skipped.

    Raises
    ------
    SchemaError
        If the file is missing, or a line has more or fewer cells than the header.
    """
    if not file.is_file():
        raise SchemaError("", "no such file", file.name)
    with file.open(encoding=encoding, newline="") as stream:
        reader = csv.reader(stream)
        header = [name.strip() for name in next(reader, [])]
        for cells in reader:
            if not any(cells):
                continue
            if len(cells) != len(header):
                problem = f"must have {len(header)} cells as the header has, got {len(cells)}"
                raise SchemaError("", problem, file.name, reader.line_num)
            texts = (cell.strip() for cell in cells)
            yield f"{file.name}:{reader.line_num}", dict(zip(header, texts, strict=True))


def weight_read_s(model: ModelSpec, accelerator: AcceleratorSpec, n_accelerator: int, precision: str) -> float:
    """Return the lower bound of a decode step: the active weights read once at full memory bandwidth.

    Untied input embeddings are excluded, because a step reads one row of them.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> catalog = load_catalog()
    >>> llama, h100 = catalog.model("Llama-2-7b-hf"), catalog.accelerator("nvidia-h100-sxm-80gb")
    >>> round(1000 * weight_read_s(llama, h100, 1, "fp16"), 2)
    3.94
    """
    n_lookup = 0 if model.tie_word_embeddings else model.vocab_size * model.hidden_size
    n_byte = (model.n_param_active - n_lookup) * BYTE_PER_WEIGHT[precision]
    return n_byte / (accelerator.bandwidth_byte_per_s * n_accelerator)


def rows_by_statistic(common: Row, outcomes: Mapping[str, Row]) -> list[Row]:
    """Return one row per statistic that has a figure, in the order of the schema.

    Parameters
    ----------
    common
        Cells that all rows share.
    outcomes
        Outcome cells by statistic.

    Examples
    --------
    >>> rows_by_statistic({"tp": 1}, {"p50": {"ttft_s": 0.2}, "p99": {"ttft_s": float("nan")}})
    [{'tp': 1, 'statistic': 'p50', 'ttft_s': 0.2}]
    """
    return [
        {**common, "statistic": statistic, **outcomes[statistic]}
        for statistic in STATISTICS
        if any(_is_figure(name, value) for name, value in outcomes.get(statistic, {}).items())
    ]


def _is_figure(name: str, value: object) -> bool:
    return name in OUTCOME_COLUMNS and isinstance(value, float) and not math.isnan(value)


def _stored_value(name: str, value: object) -> object:
    return round_figure(value) if name in NUMBER_COLUMNS and isinstance(value, float) else value
