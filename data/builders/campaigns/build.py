"""Command of builders without a recipe."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from builders.build import save
from builders.campaigns.build_result import BuildResult
from roofcast.data.errors import SchemaError
from roofcast.data.measurements.schema import KEY_COLUMNS


def run(
    module: str,
    builders: Mapping[str, Callable[[Path], BuildResult]],
    out: Path,
    rejected: Path,
    *,
    arguments: Sequence[str] | None = None,
    order: Sequence[str] = KEY_COLUMNS,
) -> None:
    """Build the campaigns named on the command line and write their rows.

    Parameters
    ----------
    module
        Program name in the help text.
    builders
        Builder of each campaign.
    out, rejected
        Default folders of the campaigns and of the files of rejected rows.
    arguments
        Command-line arguments; those of the process if None.
    order
        Sort columns of the rows.
    """
    parser = argparse.ArgumentParser(prog=module, description=f"Build campaigns: python -m {module}")
    parser.add_argument("campaigns", nargs="*", metavar="CAMPAIGN", help="campaign names; all by default")
    published = "folder of the published files: holds raw/, llm_pilot/ and silicon/"
    parser.add_argument("--raw", type=Path, required=True, help=published)
    parser.add_argument("--out", type=Path, default=out, help="folder of the campaigns' folders")
    parser.add_argument("--rejected", type=Path, default=rejected, help="folder of the files of rejected rows")
    options = parser.parse_args(arguments)
    unknown = set(options.campaigns) - set(builders)
    if unknown:
        parser.error(f"unknown campaign {', '.join(sorted(unknown))}; choose from {', '.join(builders)}")
    for name in options.campaigns or builders:
        try:
            result = builders[name](options.raw)
        except SchemaError as error:
            parser.error(f"{name}: {error}")
        save(result, options.out / name, options.rejected / f"{name}.csv", order)
        print(f"{name}: {result.n_read} read, {len(result.rejected)} rejected, {len(result.rows)} rows written")
