"""What a plan costs: runs, requests, tokens, and the time that it takes as it is predicted."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from roofcast.data.units import S_PER_H
from roofcast.serving.measure.plan import PlannedRun

START_S: Final = 10.0
"""Time that GuideLLM takes to start a run; docs/decisions/0026."""


@dataclass(frozen=True, slots=True)
class PlanTotals:
    """Totals of the runs of a plan.

    `expected_s`: predicted time, with the starts of the load generator; None without a prediction. `most_s`: time if
    every run takes the most it may.
    """

    n_run: int
    n_request: int
    n_token: int
    expected_s: float | None
    most_s: float

    def __str__(self) -> str:
        """Return the totals in words.

        Examples
        --------
        >>> str(PlanTotals(1, 1240, 158_720, 100.0, 310.0))
        '1 run, 1,240 requests, 158,720 tokens; about 2 min by prediction, at most 6 min'
        """
        runs = f"{self.n_run} run{'s' if self.n_run != 1 else ''}"
        about = "" if self.expected_s is None else f"about {_duration(self.expected_s)} by prediction, "
        return (
            f"{runs}, {self.n_request:,} requests, {self.n_token:,} tokens; {about}at most {_duration(self.most_s)}"
        )


def plan_totals(runs: Sequence[PlannedRun], max_s: float, e2e_s: Mapping[str, float]) -> PlanTotals:
    """Return the totals of runs of up to `max_s` each.

    `e2e_s`: predicted mean latency of a request, by name of the run; empty without a prediction.

    Notes
    -----
    The streams of a closed loop each send their share of the requests one after another; the requests of an open loop
    arrive at its rate, and the last one has to end.
    """
    expected = [min(_duration_s(run, e2e_s[run.name]), max_s) + START_S for run in runs if run.name in e2e_s]
    return PlanTotals(
        n_run=len(runs),
        n_request=sum(run.n_request for run in runs),
        n_token=sum(run.n_request * (run.n_input_token + run.n_output_token) for run in runs),
        expected_s=sum(expected) if len(expected) == len(runs) else None,
        most_s=len(runs) * (max_s + START_S),
    )


def _duration_s(run: PlannedRun, e2e_s: float) -> float:
    if run.concurrency:
        return math.ceil(run.n_request / run.concurrency) * e2e_s
    return run.n_request / run.request_rate + e2e_s


def _duration(seconds: float) -> str:
    return f"{math.ceil(seconds / 60)} min" if seconds < S_PER_H else f"{seconds / S_PER_H:.1f} h"
