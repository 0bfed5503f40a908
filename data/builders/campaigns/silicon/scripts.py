"""Launch scripts of InferenceX: the rows that each one served, its dates, and its server settings.

Source: the public repository ``SemiAnalysisAI/InferenceX`` (Apache-2.0), the scripts under ``benchmarks/`` and
``perf-changelog.yaml``, which dates their changes. No results were read there.
"""

import csv
import dataclasses
import io
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, Final

LOW_LOAD: Final = 16
"""Concurrency from which SGLang's scripts poll less often."""


@dataclasses.dataclass(frozen=True)
class Launch:
    """One start of a server: nominal lengths, load, devices, and whether attention is data parallel."""

    n_input: int
    n_output: int
    concurrency: int
    n_device: int
    has_dp: bool


Rule = Callable[[Launch], float | None]

Value = float | Rule | None
"""Setting of a script: a constant, a function of the launch, or nothing."""

SETTINGS: Final = ("memory", "seqs", "poll", "stream", "chunk", "dp_wait", "batch_wait", "n_draft")
"""Settings of a script that are numbers, see the columns of `roofcast.data.measurements.schema`."""


@dataclasses.dataclass(frozen=True)
class Script:
    """Settings of one launch script, and the rows that it served, in the names of `history.scenario_of`.

    A setting is None where the script leaves it to an engine without a fixed default; `since` and `until` are ISO
    dates, blank if unbounded.
    """

    model: str
    systems: str
    engine: str
    precisions: str
    file: str
    memory: Value = None
    kv: str = ""
    seqs: Value = None
    prefix: str = ""
    poll: Value = None
    stream: Value = None
    chunk: Value = None
    dp_wait: Value = None
    batch_wait: Value = None
    n_draft: Value = None
    mtp: bool | None = None
    since: str = ""
    until: str = ""


def _poll(run: Launch) -> int:
    return 30 if run.concurrency >= LOW_LOAD else 10


def _poll_of_8(run: Launch) -> int:
    return 10 if run.n_device == 4 else _poll(run)


def _chunk_of_8(run: Launch) -> int:
    return 8192 if run.n_device == 4 else 32768


def _chunk_of_mi355x(run: Launch) -> int:
    return 32768 if (run.n_input, run.n_output) == (8192, 1024) and run.concurrency > 32 else 196608


def _share_by_load(run: Launch) -> float:
    if run.n_input == 1024:
        return 0.7 if run.concurrency >= 256 else 0.8
    return 0.75 if run.n_device == 4 else 0.8


def _two_prompts(run: Launch) -> int:
    return 2 * run.n_input


def _in_blocks(n_token: int) -> int:
    return (n_token + 64 + 63) // 64 * 64


def _prompt_and_batch(run: Launch) -> int:
    return _in_blocks(run.concurrency + run.n_input)


def _prompt_and_batch_or_8192(run: Launch) -> int:
    return max(_prompt_and_batch(run), 8192)


def _rank_batch(run: Launch) -> int:
    return max(run.concurrency // run.n_device, 1) if run.has_dp else run.concurrency


def _first_mtp_chunk(run: Launch) -> int:
    return _in_blocks((_n_draft(run) + 1) * _rank_batch(run) + round(run.n_input * 1.8))


def _mtp_batch(share: int) -> Callable[[Launch], int]:
    return lambda run: run.concurrency // (share if run.has_dp and run.concurrency >= share else 1)


def _mtp_chunk(share: int) -> Callable[[Launch], int]:
    return lambda run: _in_blocks((_n_draft(run) + 1) * _mtp_batch(share)(run) + run.n_input)


def _n_draft(run: Launch) -> int:
    return 1 if run.has_dp else 3


def _delayed(run: Launch) -> int | None:
    return 40 if (run.n_input, run.n_output) == (1024, 1024) and 64 <= run.concurrency < 256 else None


def _delayed_llama(run: Launch) -> int | None:
    return 20 if (run.n_input, run.n_output) == (1024, 1024) and run.n_device < 8 else None


def _if_dp(n_step: int) -> Callable[[Launch], int | None]:
    return lambda run: n_step if run.has_dp else None


RULES: Final[Mapping[str, Rule]] = {
    "poll": _poll, "poll_of_8": _poll_of_8, "chunk_of_8": _chunk_of_8, "two_prompts": _two_prompts,
    "prompt_and_batch": _prompt_and_batch, "prompt_and_batch_or_8192": _prompt_and_batch_or_8192,
    "first_mtp_chunk": _first_mtp_chunk, "mtp_chunk_of_4": _mtp_chunk(4), "mtp_chunk_of_8": _mtp_chunk(8),
    "n_draft": _n_draft, "delayed": _delayed, "delayed_llama": _delayed_llama, "60_if_dp": _if_dp(60),
    "50_if_dp": _if_dp(50), "concurrency": lambda run: run.concurrency, "rank_batch": _rank_batch,
    "mtp_batch_of_4": _mtp_batch(4), "mtp_batch_of_8": _mtp_batch(8), "196608_or_32768": _chunk_of_mi355x,
    "at_least_128": lambda run: max(run.concurrency, 128), "batch_of_8": lambda run: 32 if run.n_device == 4 else 128,
    "512_or_256": lambda run: 512 if (run.n_input, run.n_output) == (1024, 1024) else 256,
    "share_of_8": lambda run: 0.95 if run.n_device == 4 else 0.82, "share_by_load": _share_by_load,
    "share_by_dp": lambda run: 0.7 if run.has_dp else 0.8,
}  # fmt: skip
"""Function of the launch by its name in ``scripts.csv``."""


def load_scripts() -> list[Script]:
    """Return the scripts of ``scripts.csv`` in their order.

    Scripts with equal settings, for other chips or precisions or at another path, are listed once. ``mtp`` is yes or
    no where a script served only rows with or without multi-token prediction.
    """
    text = (resources.files(__package__) / "scripts.csv").read_text(encoding="utf-8")
    scripts = []
    for row in csv.DictReader(io.StringIO(text)):
        cells: dict[str, Any] = {name: _value(text) if name in SETTINGS else text for name, text in row.items()}
        scripts.append(Script(**cells | {"mtp": {"yes": True, "no": False}.get(cells["mtp"])}))
    return scripts


def _value(text: str) -> Value:
    return RULES[text] if text in RULES else float(text) if text else None


SCRIPTS: Final = load_scripts()
