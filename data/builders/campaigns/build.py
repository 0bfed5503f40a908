"""Rebuild campaigns from their published files: ``python -m builders.campaigns.build --help``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from builders.campaigns.argonne import build_argonne
from builders.campaigns.build_result import BuildResult
from builders.campaigns.club_3090 import build_club_3090
from builders.campaigns.dstack import build_dstack
from builders.campaigns.gpustack_lab import build_gpustack_lab
from builders.campaigns.inferencemax import build_inferencemax
from builders.campaigns.llm_pilot import build_llm_pilot
from builders.campaigns.mistralrs import build_mistralrs
from builders.campaigns.mlperf_inference import build_mlperf_inference
from builders.campaigns.mlperf_v60_logs import build_mlperf_v60_logs
from builders.campaigns.pegainfer import build_pegainfer
from builders.campaigns.rocm_atom import build_rocm_atom
from builders.campaigns.silicon.campaign import build_silicon
from builders.campaigns.threads_local_engines import build_threads_local_engines
from builders.campaigns.threads_vllm import build_threads_vllm
from builders.campaigns.trtllm_overview import build_trtllm_overview
from builders.rejected_rows import REJECTED
from roofcast.data import campaigns
from roofcast.data.errors import SchemaError
from roofcast.data.measurements.schema import KEY_COLUMNS

BUILDERS: Final[dict[str, Callable[[Path], BuildResult]]] = {
    "llm_pilot": build_llm_pilot,
    "trtllm_overview": build_trtllm_overview,
    "inferencemax": build_inferencemax,
    "silicon": build_silicon,
    "argonne": build_argonne,
    "mlperf_inference": build_mlperf_inference,
    "dstack": build_dstack,
    "gpustack_lab": build_gpustack_lab,
    "pegainfer": build_pegainfer,
    "mlperf_v60_logs": build_mlperf_v60_logs,
    "mistralrs": build_mistralrs,
    "threads_vllm": build_threads_vllm,
    "threads_local_engines": build_threads_local_engines,
    "rocm_atom": build_rocm_atom,
    "club_3090": build_club_3090,
}
"""Builder of each campaign: takes the folder of published files, returns the built campaign."""


def save(result: BuildResult, folder: Path, rejected_file: Path, order: Sequence[str] = KEY_COLUMNS) -> None:
    """Write rows, counts and rejected rows of a campaign. The output is deterministic.

    Parameters
    ----------
    folder
        Folder of the campaign: holds ``rows.csv`` and the counts in ``campaign.toml``.
    rejected_file
        CSV file of the rejected rows.
    order
        Sort columns of the rows.
    """
    ordered = result.rows.sort_values(list(order), kind="stable")
    is_blank = ordered.isna().all() | (ordered == "").all()
    _write(ordered.loc[:, ~is_blank].apply(lambda column: column.map(_cell)), folder / "rows.csv")
    rejected = result.rejected.sort_values(["reference", "reason"], kind="stable")
    if len(rejected):
        rejected_file.parent.mkdir(parents=True, exist_ok=True)
        _write(rejected, rejected_file)
    else:
        rejected_file.unlink(missing_ok=True)
    _save_counts(folder / "campaign.toml", result, rejected["reason"])


def _write(table: pd.DataFrame, file: Path) -> None:
    file.write_text(table.to_csv(index=False, lineterminator="\n"), encoding="utf-8", newline="\n")


def _save_counts(file: Path, result: BuildResult, reasons: pd.Series) -> None:
    """Write the counts of a campaign; those of the rejected rows are the last TOML table."""
    text = file.read_text(encoding="utf-8").partition("\n[rejected]\n")[0]
    for name, count in {"n_read": result.n_read, "n_row": len(result.rows)}.items():
        text = re.sub(rf"^{name} = \d+$", f"{name} = {count}", text, flags=re.MULTILINE)
    if len(reasons):
        text += "\n[rejected]\n" + "".join(f"{reason} = {n}\n" for reason, n in reasons.value_counts().items())
    file.write_text(text, encoding="utf-8", newline="\n")


def _cell(value: float | str) -> str:
    if isinstance(value, float):
        return "" if pd.isna(value) else repr(float(value)).removesuffix(".0")
    return str(value)


def main(arguments: Sequence[str] | None = None) -> None:
    """Build inference campaigns and write their rows."""
    run("builders.campaigns.build", BUILDERS, Path(campaigns.__file__).parent, REJECTED, arguments=arguments)


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


if __name__ == "__main__":
    main()
