"""Generator of `models.csv`: model shapes stated by the published benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from builders.job_campaigns.other_models import OTHERS, other_spec, with_kin
from builders.job_campaigns.sweep_models import SWEEP_MODELS
from roofcast.data import job_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.job_campaigns.models import FILE, cut_spec, gpt_spec, save_models
from roofcast.data.specs import ModelSpec

TR11: Final = "train/tr11-176B-ml/chronicles-prequel.md"
TR11_SHAPES: Final[tuple[tuple[int, int, tuple[int, ...]], ...]] = (
    (100, 12288, (64,)), (106, 12288, (64, 96, 128)), (96, 12288, (64, 96, 128)),
    (82, 13312, (64, 104, 128)), (84, 13312, (64, 128)), (94, 13312, (128,)),
    (78, 13824, (64, 96, 128)), (80, 13824, (64,)), (84, 13824, (64,)),
    (6, 14336, (64,)), (10, 14336, (64,)), (70, 14336, (64, 112, 128)), (72, 14336, (16, 32, 64, 112, 128, 256)),
    (82, 14336, (128,)), (72, 14400, (96,)), (77, 14400, (96,)), (81, 14400, (96,)),
)  # fmt: skip
"""Layers, width and head counts of the sweep before BigScience's 176B model; vocabulary of 250,000."""

GPT2: Final = "experiments/gpt2-meg/meg_gpt2_perf_n16.slurm"
GPT2_SHAPES: Final = {
    "7.5B": (36, 4096), "18B": (40, 6144), "25B": (40, 7168), "30B": (48, 7168), "39B": (48, 8192),
    "52B": (64, 8192), "65B": (64, 9216), "97B": (64, 11264), "116B": (64, 12288), "206B": (64, 16384),
}  # fmt: skip
"""Layers and width by printed size, from the table in the job scripts; 32 heads each."""

GPT2_VOCABULARY: Final = 50_257
TR3: Final = "train/tr3-1B3-baseline/tr3m-1B3-emb-norm-pile.slurm"
TR8: Final = "experiments/tr8-104B.md"

CUTS: Final = {
    "meta-llama/Llama-3.1-405B": ((7, 21, 42), "llama3.1/README_405b.md"),
    "xai-org/grok-1": ((2, 4, 8, 16, 32), "grok1/README_314b.md"),
}
"""Models that NVIDIA's DGX Cloud benchmarks truncate to fit few accelerators: layer counts and source page."""


def build_models() -> list[ModelSpec]:
    """Return the models of the training campaigns that are not in the catalogue."""
    specs = [
        gpt_spec(n_layer, width, n_head, page=TR11) for n_layer, width, heads in TR11_SHAPES
        for n_head in heads
    ]  # fmt: skip
    specs += [gpt_spec(*shape, 32, GPT2_VOCABULARY, 1024, page=GPT2) for shape in GPT2_SHAPES.values()]
    specs += [gpt_spec(24, 2048, 16, GPT2_VOCABULARY, page=TR3), gpt_spec(32, 16384, 32, GPT2_VOCABULARY, page=TR8)]
    specs += with_kin(map(other_spec, (*OTHERS, *SWEEP_MODELS)), load_catalog().models.values())
    for model, (layers, page) in CUTS.items():
        full_model = load_catalog().model(model)
        source = f"https://github.com/NVIDIA/dgxc-benchmarking: {page}; {full_model.source}"
        specs += [cut_spec(full_model, n_layer, source) for n_layer in layers]
    return specs


def main() -> None:
    """Write `models.csv` next to the campaigns."""
    save_models(build_models(), Path(job_campaigns.__file__).with_name(FILE))


if __name__ == "__main__":
    main()
