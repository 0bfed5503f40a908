"""How many workers a disaggregated row of `silicon_sample.csv` had, where the row itself does not say.

``silicon/workers.csv`` holds the prefill and decode workers of InferenceX's public configurations by key, lengths
and requests in flight (``.github/configs/nvidia-master.yaml`` in SemiAnalysisAI/InferenceX, Apache-2.0, spring 2026).
A row is looked up by what it states; where the configurations that fit differ in their counts, nothing is known.

No configuration answers for a row that is older than itself. The first to be written down are those of GPT-OSS on
GB200 (pull request 387 of that repository, 6 January 2026) and of DeepSeek-R1 in FP4 on B300 (585, after 582 of 27
January). Rows of 7 and 28 January are taken for the runs of these pull requests: ``perf-changelog.yaml`` names no
later change to their counts up to mid-April. One key was rewritten for one input length: `REWRITTEN`.

Rows of the database dump state their counts, the earliest of 29 January: all 147 that fit one configuration agree
with it. 141 share its parallelism too; the other six are of February and differ in that of prefill, which pull
request 919 corrected in March without a change to what ran.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import io
from collections.abc import Hashable
from importlib import resources
from typing import Final

import pandas as pd

from builders.campaigns.silicon.history import question_of
from builders.campaigns.silicon.source import SourceRow

SINCE: Final = dt.date(2026, 1, 6)
"""Day on which the first of these configurations was written down: earlier rows ran others under the same keys."""

REWRITTEN: Final = {("dsr1-fp8-b200-dynamo-sglang", "8192"): dt.date(2026, 3, 13)}
"""By key and input length, the day of the pull request (907) that replaced its configurations by these."""

_FAMILIES: Final = {"dsr1": "deepseek", "gptoss": "gpt-oss", "kimik2.5": "kimi"}
_ENGINES: Final = {"trt": "trtllm"}


@dataclasses.dataclass(frozen=True)
class Stage:
    """Workers of prefill or of decode: how many, attention's tensor and data parallelism, expert parallelism."""

    n_worker: int
    tp: int
    dp: int
    ep: int

    @property
    def n_device(self) -> int:
        """Accelerators of one worker."""
        return self.tp * self.dp


Workers = tuple[Stage, Stage]
"""Prefill and decode."""


def workers_of(row: SourceRow) -> Workers | None:
    """Return the workers of a disaggregated InferenceX row; None if no configuration fits, or several that differ."""
    if not row.is_inferencex or row.date is None:
        return None
    asked = _configurations().get((*question_of(row), row.concurrency), ())
    fitting = {workers for since, workers in asked if since <= row.date and _fits(row, workers)}
    return fitting.pop() if len(fitting) == 1 else None


def _fits(row: SourceRow, workers: Workers) -> bool:
    """Tell whether a row has a configuration's devices; its one figure for experts is that of prefill."""
    prefill, decode = workers
    for stage, has in (("prefill", prefill), ("decode", decode)):
        if row.count(f"{stage}_tp_size") * max(row.count(f"{stage}_attention_dp_size"), 1) != has.n_device:
            return False
    return row.label is None or row.count("prefill_moe_ep_size") == prefill.ep


@functools.cache
def _configurations() -> dict[tuple[object, ...], tuple[tuple[dt.date, Workers], ...]]:
    text = (resources.files(__package__) / "workers.csv").read_text(encoding="utf-8")
    found: dict[tuple[object, ...], tuple[tuple[dt.date, Workers], ...]] = {}
    for cells in pd.read_csv(io.StringIO(text), dtype=str).to_dict("records"):
        family, precision, system, _, engine = cells["key"].split("-")
        system = system if system.startswith("gb") else f"{system}_sxm"
        question = (_FAMILIES[family], system, _ENGINES.get(engine, engine), precision, cells["isl"], cells["osl"])
        since = REWRITTEN.get((cells["key"], cells["isl"]), SINCE)
        workers = _stage(cells, "prefill"), _stage(cells, "decode")
        for concurrency in cells["concurrency"].split():
            key = (*question, int(concurrency))
            found[key] = (*found.get(key, ()), (since, workers))
    return found


def _stage(cells: dict[Hashable, str], name: str) -> Stage:
    n_worker, n_device, ep = (int(cells[f"{name}_{column}"]) for column in ("workers", "tp", "ep"))
    has_dp = cells[f"{name}_dpa"] == "1"
    return Stage(n_worker, 1 if has_dp else n_device, n_device if has_dp else 1, ep)
