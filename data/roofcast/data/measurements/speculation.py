"""Speculative decoding in the columns of a measurement: which rows speculate, and what tools count of it."""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from roofcast.data.measurements.schema import NO_SPECULATION

NAMES: Final = {
    "": "", "none": "", "off": "", "mtp": "mtp", "nextn": "mtp", "on": "mtp", "eagle": "eagle", "eagle3": "eagle",
    "standalone": "draft", "draft_model": "draft", "draft_target": "draft", "drafttarget": "draft", "ngram": "ngram",
    "lookahead": "ngram",
}  # fmt: skip
"""Kind by its name in SGLang, TensorRT-LLM and InferenceMAX, in lower case; blank where nothing is drafted."""


def speculates(columns: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
    """Return whether each row has speculative decoding: its kind, or drafted or accepted tokens of an unknown kind.

    Examples
    --------
    >>> speculates({"speculation": np.array(["mtp", "none", ""]), "n_speculative_token": np.array([np.nan, 3, 3])})
    array([ True, False,  True])
    """
    n_row = len(next(iter(columns.values())))
    kind = np.asarray(columns.get("speculation", np.full(n_row, "")), dtype=object)
    kind = np.where(kind == kind, kind, "")  # noqa: PLR0124  (NaN)
    blank = np.full(n_row, np.nan)
    n_draft, length = (
        np.asarray(columns.get(name, blank), dtype=float) for name in ("n_speculative_token", "acceptance_length")
    )
    return np.asarray(np.where(kind == "", (n_draft > 0) | (length > 1), kind != NO_SPECULATION), dtype=bool)


def speculation_cells(
    kind: str = "", n_draft: float = math.nan, length: float = math.nan, draft_ratio: float = math.nan
) -> dict[str, Any]:
    """Return the columns of what a tool counts; none where nothing was drafted or nothing is known of it.

    - `kind`: That of the column `speculation`; blank where the tool does not tell it.
    - `n_draft`: Drafted tokens of a step and sequence.
    - `length`: Mean tokens of a step, the target model's own among them.
    - `draft_ratio`: Accepted over drafted tokens.

    Examples
    --------
    >>> speculation_cells(n_draft=3.0, draft_ratio=0.5)
    {'n_speculative_token': 3.0, 'draft_acceptance_ratio': 0.5}
    >>> speculation_cells(length=1.0)
    {}
    """
    if not (kind or n_draft > 0 or length > 1):
        return {}
    names = ("n_speculative_token", "acceptance_length", "draft_acceptance_ratio")
    numbers = zip(names, (n_draft, length, draft_ratio), strict=True)
    return ({"speculation": kind} if kind else {}) | {name: one for name, one in numbers if not math.isnan(one)}
