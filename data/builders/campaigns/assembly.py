"""Inference campaign of a recipe: its rows under catalogue names, with the rules that hold for all campaigns."""

from __future__ import annotations

from pathlib import Path

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder
from builders.published import RejectionError
from builders.recipe import Recipe, RowMaker
from roofcast.data.measurements.schema import NUMBER_COLUMNS


def assemble(recipe: Recipe, root: Path) -> BuildResult:
    """Build a campaign from the files under `root`.

    Raises
    ------
    SchemaError
        If a file is missing or malformed, or a row breaks the schema.
    """
    names = recipe.names
    builder = CampaignBuilder(recipe.name, names.get("model"), names.get("accelerator"), recipe.stack)
    maker = RowMaker(recipe, NUMBER_COLUMNS)
    for record in recipe.records(root):
        try:
            rows = maker.rows(record)
        except RejectionError as error:
            builder.reject(record.reference, error.reason, error.detail, record.n_published)
        else:
            builder.add(record.reference, rows, record.n_published)
    return builder.build()
