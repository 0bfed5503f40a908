"""Rebuild training campaigns: ``python -m builders.job_campaigns.build --help``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from builders.campaigns.build import run
from builders.campaigns.build_result import BuildResult
from builders.job_campaigns.bigscience import build_bigscience
from builders.job_campaigns.dgxc import build_dgxc
from builders.job_campaigns.habana import build_habana
from builders.job_campaigns.mlperf import build_mlperf
from builders.job_campaigns.neuron import build_neuron
from builders.rejected_rows import TRAINING_REJECTED
from roofcast.data import job_campaigns
from roofcast.data.measurements.job_schema import TRAINING_KEY_COLUMNS

TRAINING_BUILDERS: Final[dict[str, Callable[[Path], BuildResult]]] = {
    "dgxc_benchmarking": build_dgxc,
    "mlperf_training": build_mlperf,
    "bigscience": build_bigscience,
    "aws_neuron_training": build_neuron,
    "optimum_habana_training": build_habana,
}
"""Builder of each campaign: takes the folder of published files, returns the built campaign."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Build training campaigns and write their rows."""
    folder = Path(job_campaigns.__file__).parent
    run(
        "builders.job_campaigns.build",
        TRAINING_BUILDERS,
        folder,
        TRAINING_REJECTED,
        arguments=arguments,
        order=TRAINING_KEY_COLUMNS,
    )


if __name__ == "__main__":
    main()
