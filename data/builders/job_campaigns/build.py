"""Rebuild training campaigns: ``python -m builders.job_campaigns.build --help``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from builders.campaigns.build import run
from builders.campaigns.build_result import BuildResult
from builders.job_campaigns.adapters import build_fsdp_qlora, build_optimum_benchmark
from builders.job_campaigns.alpa import build_alpa
from builders.job_campaigns.bigscience import build_bigscience
from builders.job_campaigns.clusters import build_internevo, build_kempner_forge
from builders.job_campaigns.dgxc import build_dgxc
from builders.job_campaigns.habana import build_habana
from builders.job_campaigns.judges import build_megatron_papers
from builders.job_campaigns.mlperf import build_mlperf
from builders.job_campaigns.nanotron import build_nanotron
from builders.job_campaigns.neuron import build_neuron
from builders.job_campaigns.oneflow import build_dlperf_gpt, build_libai
from builders.job_campaigns.pipelines import build_sailor, build_vtrain
from builders.job_campaigns.qwen import build_ms_swift, build_qwen_finetune
from builders.job_campaigns.readme_pages import build_a10_oke, build_paddlenlp, build_readme_tables
from builders.job_campaigns.torchao import build_torchao
from builders.rejected_rows import TRAINING_REJECTED
from roofcast.data import job_campaigns
from roofcast.data.measurements.job_schema import TRAINING_KEY_COLUMNS

TRAINING_BUILDERS: Final[dict[str, Callable[[Path], BuildResult]]] = {
    "dgxc_benchmarking": build_dgxc,
    "mlperf_training": build_mlperf,
    "bigscience": build_bigscience,
    "aws_neuron_training": build_neuron,
    "optimum_habana_training": build_habana,
    "nanotron_ultrascale": build_nanotron,
    "vtrain": build_vtrain,
    "alpa_osdi22": build_alpa,
    "ms_swift": build_ms_swift,
    "libai": build_libai,
    "qwen_finetune": build_qwen_finetune,
    "internevo": build_internevo,
    "optimum_benchmark": build_optimum_benchmark,
    "dlperf_gpt": build_dlperf_gpt,
    "fsdp_qlora": build_fsdp_qlora,
    "kempner_forge": build_kempner_forge,
    "torchao": build_torchao,
    "sailor": build_sailor,
    "paddlenlp": build_paddlenlp,
    "readme_tables": build_readme_tables,
    "a10_oke": build_a10_oke,
    "megatron_papers": build_megatron_papers,
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
