"""Table headings of all sources, mapped to cells of a training row."""

import re
from collections.abc import Mapping
from typing import Final

from builders.figures import number, ratio
from builders.job_campaigns.duplicates import Cells
from builders.job_campaigns.source_rows import PER_ACCELERATOR
from roofcast.data.units import BYTE_PER_GB, BYTE_PER_GIB, BYTE_PER_MIB, FLOP_PER_TFLOP

_NOISE: Final = re.compile(r"<[^>]*>|&nbsp;|[\W_]+")
_RATE: Final = "model_flop_per_s_per_accelerator"
_MEMORY: Final = "memory_byte_per_accelerator"
_HEADINGS: Final = (
    ("n_accelerator", 1.0, "gpus numgpus gpunum gpu数量 devices numberofchips ofgpus"),
    ("n_node", 1.0, "nodes nnodes numnodes"),
    ("n_global_batch_sequence", 1.0, "gbs globalbatchsize globalbatchsizes globbs"),
    ("n_micro_batch_sequence", 1.0, "mbs microbs micbs microbatchsize microbatchsizes bsgpu"),
    ("n_gradient_accumulation", 1.0, "ga gas gradaccum"),
    ("n_token_per_sequence", 1.0, "seqlen seqlength sequencelength packedsequencelength seqlent maxseqlength"),
    ("n_token_per_sequence", 1024.0, "seqlenk sequencelengthk"),
    *((size, 1.0, size) for size in ("tp", "pp", "cp", "vp", "ep", "dp")),
    (PER_ACCELERATOR, 1.0, "tokenssecgpu tokenssecchip tokensgpusecond tpsgpu throughputtsgpu gputhroughputtsgpu"),
    ("throughput_token_per_s", 1.0, "throughputts tokenssec"),
    (_RATE, FLOP_PER_TFLOP, "modeltflopsecgpu modeltflopspergpu modeltflopsgpu modeltflopssecgpu tflopssecgpu"),
    (_RATE, FLOP_PER_TFLOP, "tflopsgpu tflopssecchip tflopseccchip tflopsecchip tflopchipsec"),
    ("mfu_ratio", 1.0, "mfu modelflopsutilization modelflopsutilizationmfu"),
    ("hfu_ratio", 1.0, "hfu"),
    ("step_time_s", 1.0, "steptimeseconds timeperiters timeperglobalsteps secit steptime steptimes"),
    (_MEMORY, BYTE_PER_GIB, "memorygib peakmemoryactivegib"),
    (_MEMORY, BYTE_PER_GB, "memorygb peakmemorygb peakmemory"),
    (_MEMORY, BYTE_PER_MIB, "peakmemmib"),
)
HEADERS: Final = {heading: (cell, unit) for cell, unit, headings in _HEADINGS for heading in headings.split()}
"""Cell name and unit by normalized heading; see `normalize_heading`."""


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
            name, unit = HEADERS[normalize_heading(heading)]
            value = ratio(text) if name.endswith("_ratio") else number(text)
            if value:
                result.setdefault(name, value if unit == 1.0 else float(f"{value * unit:.12g}"))
    return result
