"""Campaign of training and fine-tuning jobs of a recipe."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from builders.build_result import BuildResult
from builders.job_campaigns.duplicates import EXACT_RTOL, PRINTED_RTOL
from builders.job_campaigns.headers import read_cells
from builders.job_campaigns.releases import superseded_by
from builders.job_campaigns.source_rows import NODE_SIZE, PER_ACCELERATOR, build
from builders.published import Record, RejectionError
from builders.recipe import Recipe, RowMaker
from roofcast.data.measurements.job_schema import TRAINING_SCHEMA

NUMBERS: Final = frozenset(
    {NODE_SIZE, PER_ACCELERATOR, *(name for name, column in TRAINING_SCHEMA.items() if column.kind == "float")}
)


def assemble(recipe: Recipe, root: Path) -> BuildResult:
    """Build a campaign from the files under `root`; a row of a page that states no date has the day of its first.

    Raises `SchemaError` if a file is missing or malformed, or a row breaks the schema.
    """
    if "*" in recipe.same:
        recipe = replace(recipe, same=tuple(name for name in TRAINING_SCHEMA if name not in {"campaign", "derived"}))
    maker, n_read = RowMaker(recipe, NUMBERS, read_cells), 0
    rows: list[Record] = []
    for record in recipe.records(root):
        n_read += record.n_published
        try:
            day = {"date": record.cells.get("@date", "")}
            rows += [Record(record.reference, day | row) for row in maker.rows(record)]
        except RejectionError as error:
            rows.append(record.rejected(error.reason, error.detail))
    rtol = PRINTED_RTOL if recipe.is_printed else EXACT_RTOL
    return build(recipe.name, n_read, rows, rtol, revise=superseded_by if recipe.supersedes else None)
