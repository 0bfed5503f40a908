"""BigScience: sweeps over shapes and topologies on V100 and A100 before BLOOM's training."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import PageRow, number, read_pages
from builders.job_campaigns.headers import normalize_heading, read_cells
from builders.job_campaigns.source_rows import Cells, RejectedRow, SourceRow, build
from roofcast.data.units import BYTE_PER_GB, FLOP_PER_TFLOP, s_from_ms

RAW: Final = "raw/bigscience/tables.jsonl"

_NHIDDEN: Final = re.compile(r"N?HIDDEN=(\d+)")
_NLAYERS: Final = re.compile(r"NLAYERS=(\d+)")
_GIGABYTES: Final = re.compile(r"([\d.]+)GB")

GPT2_SHAPES: Final = {
    "7.5B": (36, 4096), "18B": (40, 6144), "25B": (40, 7168), "30B": (48, 7168), "39B": (48, 8192),
    "52B": (64, 8192), "65B": (64, 9216), "97B": (64, 11264), "116B": (64, 12288), "206B": (64, 16384),
}  # fmt: skip
"""Layers and width by printed size, from the table in the job scripts; 32 heads each."""

TR11_BY_SIZE: Final = {
    "181B": (72, 14336), "182B": (78, 13824), "187B": (80, 13824), "177B": (96, 12288), "183B": (72, 14400),
    "195B": (77, 14400), "200B": (80, 14400), "205B": (81, 14400), "20B": (8, 14400),
}  # fmt: skip
"""Layers and width by printed size where the section omits them, from its formula and divisible stages."""

CATALOGUE_SHAPES: Final = {
    (80, 14400): "bigscience/tr11-prequel-h14400-l80",
    (8, 14400): "bigscience/tr11-prequel-h14400-l8",
}

_KEY_COLUMNS: Final = ("MBS", "Sec/it", "TFLOPs", "Notes")
SUPERSEDED: Final[Mapping[tuple[str, ...], str]] = {
    ("2022-02-21", "4", "152.51", "126.18", "02-20"): "micro batch corrected to 8 two days later",
    ("2022-02-21", "2", "120.29", "134.02", "02-21"): "step time and TFLOP/s swapped; corrected on 2022-02-26",
    ("2022-02-22", "2", "120.29", "134.02", "02-21"): "step time and TFLOP/s swapped; corrected on 2022-02-26",
}
"""Error in a row that a later revision corrects, by the row's first day and its cells in `_KEY_COLUMNS`."""


def build_bigscience(root: Path) -> BuildResult:
    """Build the campaign from the files under `root`."""
    pages = read_pages(root / RAW)
    return build("bigscience", len(pages), _read_rows(pages), shared={"stack": "bigscience"})


def _read_rows(pages: list[PageRow]) -> Iterator[SourceRow | RejectedRow]:
    for page in pages:
        superseded = SUPERSEDED.get((page.date, *(page.cells.get(name, "") for name in _KEY_COLUMNS)))
        if superseded is not None:
            yield RejectedRow(page.reference, "superseded", superseded)
        elif "chronicles-prequel" in page.file:
            yield SourceRow(page.reference, _tr11(page))
        elif "gpt2" in page.file:
            yield SourceRow(page.reference, _gpt2(page))
        elif "tr3m" in page.file:
            yield SourceRow(page.reference, _tr3(page))
        elif "BNB" in page.heading:
            yield _tr8(page)
        else:
            yield RejectedRow(
                page.reference, "unknown_model", "a 104B model whose MLP had the wrong width, or no training table"
            )


def _shared(page: PageRow, notes: str) -> Cells:
    cells = read_cells(page.cells)
    rate = number(next((text for name, text in page.cells.items() if normalize_heading(name) == "tflops"), None))
    is_oom = "OOM" in " ".join(page.cells.values()) and rate is None
    memory = _GIGABYTES.match(page.cells.get("Mem") or page.cells.get("GPU M") or notes)
    return cells | {
        "framework": "megatron-deepspeed", "compute_precision": "fp16", "method": "pretrain", "date": page.date,
        "recomputation": "full", "note": notes[:200],
        "hardware_flop_per_s_per_accelerator": rate * FLOP_PER_TFLOP if rate else None,
        "memory_byte_per_accelerator": float(memory[1]) * BYTE_PER_GB if memory and not is_oom else None,
        "status": "out_of_memory" if is_oom else "ok", "memory_kind": "device",
        "sequence_parallel": "off", "flash_attention": "off",
    }  # fmt: skip


def _tr11(page: PageRow) -> Cells:
    n_head = int(number(page.cells.get("NHEADS")) or 64)
    width, depth = _NHIDDEN.search(page.intro), _NLAYERS.search(page.intro)
    size = page.cells.get("Size", "")
    shape = (int(depth[1]), int(width[1])) if width and depth else TR11_BY_SIZE.get(size)
    layers = number(page.cells.get("Layers"))
    cells = _shared(page, page.cells.get("Notes", ""))
    cells |= {
        "model": _tr11_id(shape, n_head, layers), "accelerator": "A100 80GB", "n_token_per_sequence": 2048,
        "compute_precision": "bf16" if page.heading.endswith("bf16") else "fp16",
        "sharding": {"0": "ddp", "1": "zero1"}.get(page.cells.get("ZS", ""), "zero1"),
    }  # fmt: skip
    if "n_node" in cells:
        cells["n_accelerator"] = float(str(cells["n_node"])) * 8
    if "GBS=512" in page.intro:
        cells["n_global_batch_sequence"] = 512.0
    return cells


def _tr11_id(shape: tuple[int, int] | None, n_head: int, layers: float | None) -> str:
    if shape is None:
        return "shape not stated"
    n_layer, width = int(layers or shape[0]), shape[1]
    if width == 14400:
        return CATALOGUE_SHAPES.get((n_layer, width), _gpt_id(n_layer, width, 96))
    return _gpt_id(n_layer, width, n_head)


def _gpt_id(n_layer: int, width: int, n_head: int, vocabulary: str = "") -> str:
    return f"bigscience/gpt-h{width}-l{n_layer}-a{n_head}{vocabulary}"


def _gpt2(page: PageRow) -> Cells:
    size = page.cells.get("Size", "")
    speed = page.cells.get("Speed") or page.cells.get("Throughput", "")
    step = number(speed)
    cells = _shared(page, page.cells.get("Notes", ""))
    cells.pop("n_gradient_accumulation", None)
    hugging_face = "HF" in page.heading or "Deepspeed ZeRO" in page.heading
    stage = page.cells.get("Zero", "3" if hugging_face else "")
    offloads = (page.cells.get("Opt Offl"), page.cells.get("Par Offl"))
    return cells | {
        "model": _gpt_id(*GPT2_SHAPES[size], 32, "-gpt2") if size in GPT2_SHAPES else f"GPT-2 of {size}",
        "accelerator": "V100 16GB" if "16GB" in page.intro or "16gb" in page.file else "V100 32GB",
        "n_token_per_sequence": 1024, "step_time_s": s_from_ms(step) if step and speed.endswith("ms") else step,
        "sharding": f"zero{stage}" if stage else "",
        "offload": "optimizer+parameters" if offloads == ("Y", "Y") or "full cpu offload" in page.intro
        else {"Y": "optimizer", "N": "none"}.get(offloads[0] or "", ""),
        "tp": cells.get("tp") or _tp_from_rest(cells, hugging_face),
    }  # fmt: skip


def _tp_from_rest(cells: Cells, hugging_face: bool) -> float | None:
    """Return accelerators / (pp x dp); the page's TP=4 is not always correct."""
    n_left = float(str(cells["n_accelerator"])) / float(str(cells.get("pp", 1.0))) / float(str(cells.get("dp", 1.0)))
    return n_left if not hugging_face and n_left in {1.0, 2.0, 4.0} else None


def _tr3(page: PageRow) -> Cells:
    return _shared(page, page.cells.get("Notes", "")) | {
        "model": _gpt_id(24, 2048, 16, "-gpt2"),
        "accelerator": "V100 16GB" if page.heading.startswith("16GB") else "V100 32GB",
        "n_accelerator": 8.0, "n_token_per_sequence": 2048, "n_global_batch_sequence": 512.0, "sharding": "zero1",
        "step_time_s": number(page.cells["Speed"]),
        "recomputation": "none" if "removing" in page.intro else "full",
    }  # fmt: skip


def _tr8(page: PageRow) -> SourceRow | RejectedRow:
    rate = number(page.cells["TFlops"])
    if rate is not None and rate < 25.0 and page.date == "2021-11-02":
        return RejectedRow(
            page.reference, "superseded", "TFLOP/s for half the sequence length; corrected on the same day"
        )
    return SourceRow(
        page.reference,
        _shared(page, page.cells.get("Notes", ""))
        | {
            "model": _gpt_id(32, 16384, 32, "-gpt2"), "accelerator": "V100 32GB", "n_accelerator": 128.0,
            "n_token_per_sequence": 2048, "n_global_batch_sequence": 2048.0, "sharding": "zero1",
            "step_time_s": number(page.cells["Speed"]), "optimizer": "adam8bit" if "bnb" in page.intro else "adam",
        },
    )  # fmt: skip
