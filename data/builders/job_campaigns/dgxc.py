"""NVIDIA's DGX Cloud benchmarking recipes: step time, throughput and MFU from 8 to 2,304 H100."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import PageRow, number, ratio, read_pages
from builders.job_campaigns.source_rows import NODE_SIZE, Cells, RejectedRow, SourceRow, build

RAW: Final = "raw/dgxc_benchmarking/tables.jsonl"

_COLUMN: Final = re.compile(r"(\d+)x? H100 GPUs(?: \((?:FSDP=(\d+) )?GBS=(\d+)\))?$")
_TITLE: Final = re.compile(
    r"(?P<model>.+?)(?: (?P<release>\d\d\.\d\d)| Dev)? (?P<precision>BF16|FP8)(?: \((?P<sizes>.*)\))?$"
)
_SIZE: Final = re.compile(r"(TP|PP|CP|VP|MBS|GA)=(\d+)")
_SIZES: Final = {
    "TP": "tp", "PP": "pp", "CP": "cp", "VP": "vp", "MBS": "n_micro_batch_sequence", "GA": "n_gradient_accumulation",
    "GBS": "n_global_batch_sequence", "Layers": "n_layer",
}  # fmt: skip

_MEASURES: Final = {
    "Training step time (seconds per step)": ("step_time_s", number),
    "Throughput in tokens per second": ("throughput_token_per_s", number),
    "Model flops utilization": ("mfu_ratio", ratio),
}

_TOKEN_PER_SEQUENCE: Final = {"llama3.1": 8192, "maxtext": 8192, "nemotron": 4096, "llama3": 4096, "ft_llama3": 4096}
"""Sequence length by folder of the recipe; those of MaxText's Llama 2 and of truncated Grok models are shorter."""

GROK: Final = {8: (4096, 2), 16: (4096, 4), 32: (4096, 4), 64: (8192, 8), 128: (8192, 16), 256: (8192, 32)}
"""Sequence length and layers of the truncated Grok model by number of accelerators, from the table on its page."""

LLAMA_405B: Final = {32: 7, 96: 21, 192: 42}
"""Layers of the truncated Llama 3.1 405B by number of accelerators; larger runs train the full model."""


def build_dgxc(root: Path) -> BuildResult:
    """Build the campaign from the files under `root`.

    A run is a column of a table; the rows are its measures. Runs on few accelerators train models with fewer layers.
    Not every revision states them: page and number of accelerators identify the layers.
    """
    pages = read_pages(root / RAW)
    return build(
        "dgxc_benchmarking", len(pages), _read_rows(pages), shared={"stack": "nvidia/dgx-cloud", NODE_SIZE: 8.0}
    )


def _read_rows(pages: list[PageRow]) -> Iterator[SourceRow | RejectedRow]:
    runs: dict[str, Cells] = defaultdict(dict)
    table, last = "", ""
    for page in pages:
        title, measure, *_ = [*page.cells, *page.cells.values()][0], next(iter(page.cells.values()), "")
        if "inference" in page.file or page.file.startswith("alternative"):
            yield RejectedRow(page.reference, "not_training", page.file)
            continue
        if measure in {"Layers", "Training samples per second"} or (
            measure.startswith("Training step") and last != "VP"
        ):
            table = page.reference
        last = measure
        if measure == "Training samples per second":
            yield RejectedRow(
                page.reference, "no_sequence_length", "samples per second of a length that the page leaves open"
            )
            continue
        for heading, text in list(page.cells.items())[1:]:
            column = _COLUMN.search(heading)
            if column:
                run = runs[f"{table}:{column[1]}"]
                run |= _base(page, title, column) if not run else {}
                run |= _measured(measure, text)
    for reference, run in runs.items():
        yield SourceRow(reference, _complete_run(run))


def _base(page: PageRow, title: str, column: re.Match[str]) -> Cells:
    match = _TITLE.match(title)
    if match is None:
        return {}
    n_accelerator = int(column[1])
    name = match["model"].removeprefix("Maxtext ")
    method = {"LORA": "lora", " SFT": "full"}.get(name[-4:], "pretrain")
    sizes = {_SIZES[key]: float(value) for key, value in _SIZE.findall(match["sizes"] or "")}
    return {
        "model": re.sub(r" Finetuning (LORA|SFT)$", "", name), "accelerator": "H100", "n_accelerator": n_accelerator,
        "method": method, "framework": "maxtext" if "maxtext" in page.file else "nemo",
        "framework_version": match["release"] or "", "compute_precision": match["precision"].lower(),
        "n_token_per_sequence": _length(page.file, name, n_accelerator),
        "sharding": "" if not column[2] else "fsdp" if int(column[2]) == n_accelerator else "hsdp",
        "n_global_batch_sequence": float(column[3]) if column[3] else None, "date": page.date, **sizes,
    }  # fmt: skip


def _length(file: str, name: str, n_accelerator: int) -> int | None:
    if "grok" in file:
        return GROK.get(n_accelerator, (8192, 0))[0]
    if name.upper().startswith("LLAMA2"):
        return 4096
    return _TOKEN_PER_SEQUENCE.get(file.partition("/")[0])


def _measured(measure: str, text: str) -> Cells:
    if measure in _MEASURES:
        name, reader = _MEASURES[measure]
        return {name: reader(text)}
    return {_SIZES[measure]: number(text)} if measure in _SIZES else {}


def _complete_run(run: Cells) -> Cells:
    """Return the run under the name of its truncated model, without impossible sizes."""
    n_accelerator = int(str(run["n_accelerator"]))
    n_layer = int(float(str(run.pop("n_layer", None) or 0)))
    if "grok" in str(run["model"]).casefold() and n_accelerator in GROK:
        run["model"] = _cut_id("xai-org/grok-1", GROK[n_accelerator][1])
    elif "405b" in str(run["model"]) and (n_layer or LLAMA_405B.get(n_accelerator, 126)) < 126:
        run["model"] = _cut_id("meta-llama/Llama-3.1-405B", n_layer or LLAMA_405B[n_accelerator])
        if not n_layer:  # the title states the pipeline of the full model
            for name in ("pp", "vp", "n_gradient_accumulation"):
                run.pop(name, None)
    if run.get("pp") == 41:  # misprint of 1, by the table of settings on the page
        run["pp"] = 1.0
    return run


def _cut_id(model: str, n_layer: int) -> str:
    return f"{model}-cut-to-{n_layer}-layers"
