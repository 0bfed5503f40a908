"""Prometheus metrics of a running vLLM or SGLang server: what it counted between scrapes, as one run.

Latencies are means, sums over counts of histograms: the buckets are too wide for percentiles. Counters are summed
over their label sets and from scrape to scrape, so that a restart costs what was counted since the scrape before it.
The load is that of a closed loop: the mean requests, running and waiting, while there are any.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from roofcast.data.errors import SchemaError
from roofcast.data.importers.client_runs import Run, join_cells
from roofcast.data.importers.fact_tables import fact_table
from roofcast.data.importers.json_input import Floats
from roofcast.data.measurements.speculation import speculation_cells
from roofcast.data.units import ms_from_s

ENGINES: Final = ("vllm", "sglang")
"""Engines whose metrics are known."""

Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Scrape:
    """Samples of one scrape by name and labels, and the time of a monotonic clock."""

    time_s: float
    samples: Mapping[Key, float]

    @property
    def engine(self) -> str:
        """The engine of the metrics; empty if there are none of a known one."""
        return next((one for one in ENGINES if any(name.startswith(f"{one}:") for name, _ in self.samples)), "")

    @property
    def models(self) -> list[str]:
        """Models that the samples name."""
        return sorted({value for _, labels in self.samples for name, value in labels if name == "model_name"})

    def labels(self, name: str) -> dict[str, str]:
        """Return the labels of the first sample of a name; none if there is no such sample."""
        return next((dict(labels) for one, labels in self.samples if one == name), {})


def parse_scrape(text: str, time_s: float, place: str, model: str = "") -> Scrape:
    """Return the samples of metrics in Prometheus's text format; with a name, without those of other models.

    Raises `SchemaError` if the text is in another format, or has no metric of vLLM or SGLang.
    """
    try:
        samples = {
            (sample.name, tuple(sorted(sample.labels.items()))): float(sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.labels.get("model_name", model) == model or not model
        }
    except (ValueError, KeyError, IndexError) as error:
        raise SchemaError("", "has no metrics in the text format of Prometheus", place) from error
    scrape = Scrape(time_s, samples)
    if not scrape.engine:
        cure = "start vLLM as it is, SGLang with --enable-metrics"
        raise SchemaError("", f"has no metric of {' or '.join(ENGINES)}; {cure}", place)
    return scrape


class _Window:
    def __init__(self, scrapes: Sequence[Scrape]) -> None:
        self.scrapes = scrapes
        self.duration_s = scrapes[-1].time_s - scrapes[0].time_s
        self.increments: dict[str, float] = {}
        self.n_restart = 0
        for before, after in pairwise(scrapes):
            is_restart = False
            for (name, labels), value in after.samples.items():
                last = before.samples.get((name, labels), 0.0)
                is_restart |= value < last and name.endswith("_count")
                self.increments[name] = self.increments.get(name, 0.0) + value - (last if value >= last else 0.0)
            self.n_restart += is_restart

    def counter(self, names: Sequence[str]) -> float:
        return next((self.increments[name] for name in names if name in self.increments), math.nan)

    def count(self, names: Sequence[str]) -> float:
        return self.counter([f"{name}_count" for name in names])

    def mean(self, names: Sequence[str]) -> float:
        counts = {name: self.increments.get(f"{name}_count", 0.0) for name in names}
        name = next((name for name, n in counts.items() if n > 0), "")
        return self.increments.get(f"{name}_sum", math.nan) / counts[name] if name else math.nan

    def gauge(self, names: Sequence[str]) -> Floats:
        name = next((name for name in names if name in self.increments), "")
        values = [[value for (one, _), value in scrape.samples.items() if one == name] for scrape in self.scrapes]
        return np.array([sum(one) for one in values if one], dtype=float)


def run_of_scrapes(scrapes: Sequence[Scrape], cells: Mapping[str, Any], place: str) -> Run:
    """Return what a server counted between the first scrape and the last one.

    `cells`: what is known of the server. Raises `SchemaError` if no request was finished, or what is needed is not
    counted.
    """
    names = fact_table("server_metrics")[scrapes[0].engine]
    window = _Window(scrapes)
    means = {name: window.mean(names.get(name, ())) for name in ("ttft_s", "itl_s", "tpot_s", "e2e_s")}
    waits = {name: window.mean(names.get(name, ())) for name in ("queue", "prefill")}
    totals = {name: window.counter(names[name]) for name in ("input", "output", "requests")}
    n_done = totals["requests"] if totals["requests"] > 0 else window.count(names["e2e_s"])
    if not (n_done > 0 and window.duration_s > 0):
        problem = f"no request was finished in {window.duration_s:.3g} s; watch longer, or while it serves"
        raise SchemaError("", problem, place)
    lengths = {
        name: mean if not math.isnan(mean := window.mean(names[name])) else totals[total] / n_done
        for name, total in (("n_input_token", "input"), ("n_output_token", "output"))
    }
    derived = []
    gap_s = (means["e2e_s"] - means["ttft_s"]) / max(lengths["n_output_token"] - 1, 1e-9)
    if math.isnan(means["tpot_s"]) and lengths["n_output_token"] > 1 and gap_s > 0:
        means["tpot_s"], derived = gap_s, ["tpot_s"]
    rate_per_s = n_done / window.duration_s
    speculation = _speculation(window, names)
    if "n_speculative_token" in speculation:
        means["itl_s"] = math.nan  # a gap is that of a step of several tokens
    setup = join_cells(
        cells,
        lengths,
        {
            "load": "closed_loop",
            "concurrency": _in_flight(window, names, rate_per_s * means["e2e_s"]),
            "n_request": n_done,
            "duration_s": window.duration_s,
            "note": _note(window, waits),
        },
        _cache(window, names),
        speculation,
    )
    outcomes = {
        "request_throughput_per_s": rate_per_s,
        "output_throughput_token_per_s": totals["output"] / window.duration_s,
        "total_throughput_token_per_s": (totals["input"] + totals["output"]) / window.duration_s,
    }
    known = {name: value if value > 0 else math.nan for name, value in outcomes.items()}
    return Run(place, 0, setup, {"mean": means}, known, derived=tuple(derived))


def _in_flight(window: _Window, names: Mapping[str, Sequence[str]], by_little: float) -> float:
    running, waiting = window.gauge(names["running"]), window.gauge(names["waiting"])
    counts = running + waiting if len(running) == len(waiting) else running
    busy = counts[counts > 0]
    return max(float(busy.mean()) if busy.size else 1.0, 1.0, 0.0 if math.isnan(by_little) else by_little)


def _note(window: _Window, waits: Mapping[str, float]) -> str:
    parts = [f"mean {name} {ms_from_s(value):.3g} ms" for name, value in waits.items() if value >= 0]
    return ", ".join([*parts, *(["the server restarted"] if window.n_restart else [])])


def _cache(window: _Window, names: Mapping[str, Sequence[str]]) -> dict[str, float]:
    n_token, n_hit = (window.counter(names[name]) for name in ("looked_up", "cached"))
    return {"prefix_cache_ratio": n_hit / n_token} if n_token > 0 and 0 <= n_hit <= n_token else {}


def _speculation(window: _Window, names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    lengths = window.gauge(names.get("acceptance_length", ()))
    if lengths.size and lengths.max() > 1:
        return speculation_cells(length=float(lengths[lengths > 1].mean()))
    n_step, n_drafted, n_accepted = (
        window.counter(names.get(name, ())) for name in ("drafts", "drafted", "accepted")
    )
    if not (n_step > 0 and n_drafted > 0):
        return {}
    return speculation_cells("", n_drafted / n_step, 1 + n_accepted / n_step, n_accepted / n_drafted)
