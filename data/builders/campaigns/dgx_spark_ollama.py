"""Means over the repeats of a prompt."""

import statistics
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from builders.figures import number_of
from builders.published import Record

MEANS: Final = (
    "prompt_eval_count",
    "eval_count",
    "ttft_s",
    "wall_latency_s",
    "eval_duration_s",
    "prompt_eval_duration_s",
)
KEY: Final = ("model", "think", "prompt_name")

MIN_OUTPUT_TOKEN: Final = 20
"""Least length of an answer whose time per token counts."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield one record for the accepted repeats of a prompt, with their number and the rest of TTFT."""
    repeats: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for record in published:
        cells = record.cells
        if not cells["eval_count"]:
            wall_s = number_of(cells["wall_latency_s"])
            yield record.rejected("timed_out", f"no answer within {wall_s:g} s")
        elif cells["model"] in {"qwen3.5:0.8b", "qwen3.5:2b"}:  # Ollama's default may be of 8 bits
            yield record.rejected("unknown_precision", "the tag's quantisation is not stated")
        elif number_of(cells["eval_count"]) < MIN_OUTPUT_TOKEN:
            yield record.rejected("short_answer", f"{cells['eval_count']} tokens")
        else:
            repeats[tuple(cells[name] for name in KEY)].append(record)
    for key, runs in repeats.items():
        means = {name: statistics.mean(number_of(run.cells[name]) for run in runs) for name in MEANS}
        overhead_s = means["ttft_s"] - means["prompt_eval_duration_s"]
        cells = {"model": key[0], **means, "n_run": len(runs), "overhead_s": overhead_s}
        yield Record(" ".join(key), cells, n_published=len(runs))
