"""Table headings of all sources, mapped to cells of a training row."""

import re
from collections.abc import Mapping
from typing import Final

from builders.columns import UNITS
from builders.figures import number, ratio
from builders.job_campaigns.duplicates import Cells
from builders.job_campaigns.source_rows import PRINTED_NAMES

_NOISE: Final = re.compile(r"<[^>]*>|&nbsp;|[\W_]+")
_UNITS: Final = {**UNITS, "": 1.0, "Ki": 1024.0}
HEADERS: Final = {
    heading: (entry["cell"], _UNITS[entry.get("unit", "")])
    for entry in PRINTED_NAMES["heading"]
    for heading in entry["names"].split()
}
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
