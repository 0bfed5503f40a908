"""Table headings of all sources, mapped to cells of a training row."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from builders.figures import number, ratio
from builders.job_campaigns.source_rows import PER_ACCELERATOR, Cells
from roofcast.data import units

Reader = Callable[[str], float | None]

_NOISE: Final = re.compile(r"<[^>]*>|&nbsp;|[\W_]+")

_TOKEN_PER_K: Final = 1024.0


def scaled(factor: float) -> Reader:
    """Return a reader that multiplies the number by `factor`."""

    def read(text: str) -> float | None:
        value = number(text)
        return None if value is None else float(f"{value * factor:.12g}")

    return read


def _names(reader: Reader, cell: str, *spellings: str) -> dict[str, tuple[str, Reader]]:
    return dict.fromkeys(spellings, (cell, reader))


HEADERS: Final[Mapping[str, tuple[str, Reader]]] = {
    **_names(number, "n_accelerator", "gpus", "numgpus", "gpunum", "gpu数量", "devices", "numberofchips", "ofgpus"),
    **_names(number, "n_node", "nodes", "nnodes", "numnodes"),
    **_names(number, "n_global_batch_sequence", "gbs", "globalbatchsize", "globalbatchsizes", "globbs"),
    **_names(
        number, "n_micro_batch_sequence", "mbs", "microbs", "micbs", "microbatchsize", "microbatchsizes", "bsgpu"
    ),
    **_names(number, "n_gradient_accumulation", "ga", "gas", "gradaccum"),
    **_names(number, "n_token_per_sequence", "seqlen", "seqlength", "sequencelength", "packedsequencelength"),
    **_names(number, "n_token_per_sequence", "seqlent", "maxseqlength"),
    **_names(scaled(_TOKEN_PER_K), "n_token_per_sequence", "seqlenk", "sequencelengthk"),
    **{size: (size, number) for size in ("tp", "pp", "cp", "vp", "ep", "dp")},
    **_names(number, PER_ACCELERATOR, "tokenssecgpu", "tokenssecchip", "tokensgpusecond", "tpsgpu"),
    **_names(number, PER_ACCELERATOR, "throughputtsgpu", "gputhroughputtsgpu"),
    **_names(number, "throughput_token_per_s", "throughputts", "tokenssec"),
    **_names(
        scaled(units.FLOP_PER_TFLOP), "model_flop_per_s_per_accelerator", "modeltflopsecgpu", "modeltflopspergpu",
        "modeltflopsgpu", "modeltflopssecgpu", "tflopssecgpu", "tflopsgpu", "tflopssecchip", "tflopseccchip",
        "tflopsecchip", "tflopchipsec",
    ),
    **_names(ratio, "mfu_ratio", "mfu", "modelflopsutilization", "modelflopsutilizationmfu"),
    **_names(ratio, "hfu_ratio", "hfu"),
    **_names(number, "step_time_s", "steptimeseconds", "timeperiters", "timeperglobalsteps", "secit"),
    **_names(number, "step_time_s", "steptime", "steptimes"),
    **_names(scaled(units.BYTE_PER_GIB), "memory_byte_per_accelerator", "memorygib", "peakmemoryactivegib"),
    **_names(scaled(units.BYTE_PER_GB), "memory_byte_per_accelerator", "memorygb", "peakmemorygb", "peakmemory"),
    **_names(scaled(units.BYTE_PER_MIB), "memory_byte_per_accelerator", "peakmemmib"),
}  # fmt: skip
"""Cell name and text reader by normalized heading; see `normalize_heading`."""


def normalize_heading(heading: str) -> str:
    r"""Normalize a heading: lower case, no punctuation, blanks or tags.

    Examples
    --------
    >>> normalize_heading("\\#-GPUs"), normalize_heading("Tokens / sec / GPU"), normalize_heading("A&nbsp;b")
    ('gpus', 'tokenssecgpu', 'ab')
    """
    return _NOISE.sub("", heading).casefold()


def read_cells(cells: Mapping[str, str]) -> Cells:
    """Return the cells with known headings as numbers in base units; skip cells without a number.

    Examples
    --------
    >>> read_cells({"#-GPUs": "8", "TP": "n/a", "Model TFLOP / sec / GPU": "450"})
    {'n_accelerator': 8.0, 'model_flop_per_s_per_accelerator': 450000000000000.0}
    """
    result: Cells = {}
    for heading, text in cells.items():
        if normalize_heading(heading) in HEADERS:
            name, reader = HEADERS[normalize_heading(heading)]
            value = reader(text)
            if value:
                result.setdefault(name, value)
    return result
