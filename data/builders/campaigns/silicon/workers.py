"""Worker counts of the disaggregated rows of `silicon_sample.csv` that do not state them.

``silicon/workers.csv`` holds the prefill and decode workers of InferenceX's public configurations by key, lengths
and requests in flight (``.github/configs/nvidia-master.yaml`` in SemiAnalysisAI/InferenceX, Apache-2.0, spring 2026).
Rows are looked up by their stated columns. If the matching configurations disagree, the counts are unknown.

A configuration never applies to an older row. The earliest are those of GPT-OSS on GB200 (pull request 387 of that
repository, 6 January 2026) and of DeepSeek-R1 in FP4 on B300 (585, after 582 of 27 January). Rows of 7 and 28 January
are assigned to these pull requests: ``perf-changelog.yaml`` lists no later change to their counts up to mid-April.
One key was rewritten for one input length: `REWRITTEN`.

Check: rows of the database dump state their counts, the earliest of 29 January. All 147 that match one configuration
agree with it. 141 also share its parallelism; the other six are of February and differ in the prefill parallelism,
which pull request 919 corrected in March without a change of the runs.
"""

import dataclasses
import datetime as dt
import functools
import io
from collections.abc import Hashable
from importlib import resources
from typing import Final

import pandas as pd

from builders.campaigns.silicon.history import scenario_of
from builders.campaigns.silicon.source import SourceRow

SINCE: Final = dt.date(2026, 1, 6)
"""Date of the earliest configuration; older rows ran others under the same keys."""

REWRITTEN: Final = {("dsr1-fp8-b200-dynamo-sglang", "8192"): dt.date(2026, 3, 13)}
"""Date of the pull request (907) that introduced these configurations, by key and input length."""

_FAMILIES: Final = {"dsr1": "deepseek", "gptoss": "gpt-oss", "kimik2.5": "kimi"}
_ENGINES: Final = {"trt": "trtllm"}


@dataclasses.dataclass(frozen=True)
class Stage:
    """Prefill or decode workers: count, tensor and data parallelism of attention, expert parallelism."""

    n_worker: int
    tp: int
    dp: int
    ep: int

    @property
    def n_device(self) -> int:
        """Accelerators of one worker."""
        return self.tp * self.dp


Workers = tuple[Stage, Stage]
"""Prefill and decode stage."""


@dataclasses.dataclass(frozen=True)
class _Configuration:
    since: dt.date
    workers: Workers
    mtp: bool


def workers_of(row: SourceRow) -> Workers | None:
    """Return the workers of a disaggregated InferenceX row; None unless all matching configurations agree."""
    matches = {configuration.workers for configuration in _matches(row)}
    return matches.pop() if len(matches) == 1 else None


def mtp_values(row: SourceRow) -> set[bool]:
    """Return whether the configurations of a disaggregated row have multi-token prediction; empty if none matches."""
    return {configuration.mtp for configuration in _matches(row)}


def _matches(row: SourceRow) -> list[_Configuration]:
    if not row.is_inferencex or row.date is None:
        return []
    configurations = _configurations().get((*scenario_of(row), row.concurrency), ())
    return [c for c in configurations if c.since <= row.date and _fits(row, c.workers)]


def _fits(row: SourceRow, workers: Workers) -> bool:
    prefill, decode = workers
    for stage, workers_of_stage in (("prefill", prefill), ("decode", decode)):
        if (
            row.count(f"{stage}_tp_size") * max(row.count(f"{stage}_attention_dp_size"), 1)
            != workers_of_stage.n_device
        ):
            return False
    return row.label is None or row.count("prefill_moe_ep_size") == prefill.ep


@functools.cache
def _configurations() -> dict[tuple[object, ...], tuple[_Configuration, ...]]:
    text = (resources.files(__package__) / "workers.csv").read_text(encoding="utf-8")
    workers_by_key: dict[tuple[object, ...], tuple[_Configuration, ...]] = {}
    for cells in pd.read_csv(io.StringIO(text), dtype=str).to_dict("records"):
        family, precision, system, _, engine = cells["key"].split("-")
        system = system if system.startswith("gb") else f"{system}_sxm"
        scenario = (_FAMILIES[family], system, _ENGINES.get(engine, engine), precision, cells["isl"], cells["osl"])
        since = REWRITTEN.get((cells["key"], cells["isl"]), SINCE)
        workers = _stage(cells, "prefill"), _stage(cells, "decode")
        configuration = _Configuration(since, workers, cells["mtp"] == "yes")
        for concurrency in cells["concurrency"].split():
            key = (*scenario, int(concurrency))
            workers_by_key[key] = (*workers_by_key.get(key, ()), configuration)
    return workers_by_key


def _stage(cells: dict[Hashable, str], name: str) -> Stage:
    n_worker, n_device, ep = (int(cells[f"{name}_{column}"]) for column in ("workers", "tp", "ep"))
    has_dp = cells[f"{name}_dpa"] == "1"
    return Stage(n_worker, 1 if has_dp else n_device, n_device if has_dp else 1, ep)
