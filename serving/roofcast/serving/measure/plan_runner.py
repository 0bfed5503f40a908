"""Runs of a plan: each in a process, its report in a folder, so that an interrupted plan goes on where it stopped."""

import contextlib
import itertools
import math
import os
import signal
import subprocess
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from roofcast.data.errors import RoofcastError
from roofcast.data.importers import read_measurements
from roofcast.data.units import S_PER_H
from roofcast.serving.measure.guidellm import without_login
from roofcast.serving.measure.plan import PlannedRun

STARTUP_S: Final = 300.0
"""Time that a run's process may take beyond the run itself."""

_N_LOG_CHARACTER: Final = 300

Command = Callable[[PlannedRun, Path, int], list[str]]
"""Returns the command of a run that writes its report to a path, with prompts of a seed."""


@dataclass(frozen=True, slots=True)
class PlanResult:
    """Runs of a plan by what became of them: report files of all measured ones, and why others failed."""

    files: list[Path] = field(default_factory=list)
    n_measured: int = 0
    n_skipped: int = 0
    failures: dict[str, str] = field(default_factory=dict)


class PlanRunner:
    """Runs of a plan in a folder: reports ``NAME.json``, and outputs ``NAME.ATTEMPT.log`` of their processes.

    - `overrides`: Columns that the reports lack, for `read_measurements`.
    - `max_s`: Time after which a run ends.
    - `environment`: Variables of the processes beside those of this one.
    - `login`: User and password in the target, which reports and logs are freed of.
    """

    def __init__(
        self,
        folder: Path,
        overrides: Mapping[str, str],
        command: Command,
        max_s: float,
        environment: Mapping[str, str] | None = None,
        *,
        login: str = "",
    ) -> None:
        self.folder, self.overrides, self.command, self.max_s = folder.absolute(), overrides, command, max_s
        self.environment, self.login = environment or {}, login

    def report(self, run: PlannedRun) -> Path:
        """Return the path of a run's report."""
        return self.folder / f"{run.name}.json"

    def is_measured(self, run: PlannedRun) -> bool:
        """Return whether the run has a report that can be read and has a request that succeeded."""
        report = self.report(run)
        return report.exists() and not self._report_problem(report)

    def next_command(self, run: PlannedRun) -> list[str]:
        """Return the command of the run's next attempt.

        The seed of its prompts differs between folders, runs and attempts, so that a prefix cache that has the
        prompts of one has none of another.
        """
        partial = self._partial(run)
        return self.command(run, partial, zlib.crc32(f"{partial} {self._attempt(run)}".encode()))

    def measure(self, runs: Sequence[PlannedRun], progress: Callable[[PlannedRun, str], None]) -> PlanResult:
        """Measure the runs that are not measured, in order, and return what became of all of them.

        `progress`: called after each run with its outcome.
        """
        files: list[Path] = []
        failures: dict[str, str] = {}
        n_skipped = 0
        for run in runs:
            is_measured = self.is_measured(run)
            problem = "" if is_measured else self._measure_one(run)
            if problem:
                failures[run.name] = problem
            else:
                files.append(self.report(run))
            n_skipped += is_measured
            outcome = "measured before" if is_measured else "measured"
            progress(run, f"failed: {problem}" if problem else outcome)
        return PlanResult(files, len(files) - n_skipped, n_skipped, failures)

    def _measure_one(self, run: PlannedRun) -> str:
        partial, log, command = self._partial(run), self._log(run, self._attempt(run)), self.next_command(run)
        partial.unlink(missing_ok=True)
        try:
            try:
                status = _run(command, log, self.max_s + STARTUP_S, self.environment)
            finally:
                if self.login:
                    _remove_text(f"{self.login}@", [partial, log])
            problem = self._problem(status, partial, log)
            if not problem:
                partial.replace(self.report(run))
        finally:
            partial.unlink(missing_ok=True)
        return problem

    def _partial(self, run: PlannedRun) -> Path:
        return self.folder / f"{run.name}.partial.json"

    def _log(self, run: PlannedRun, attempt: int) -> Path:
        return self.folder / f"{run.name}.{attempt}.log"

    def _attempt(self, run: PlannedRun) -> int:
        return next(attempt for attempt in itertools.count(1) if not self._log(run, attempt).exists())

    def _problem(self, status: int | None, report: Path, log: Path) -> str:
        if status is None:
            return f"it did not end within {self.max_s + STARTUP_S:g} s; see {log}"
        if status or not report.exists():
            return f"exit status {status} and {'a' if report.exists() else 'no'} report: {_last_line(log)}; see {log}"
        problem = self._report_problem(report)
        return problem and f"{problem}; see {log}"

    def _report_problem(self, report: Path) -> str:
        try:
            table = read_measurements("guidellm", [report], None, overrides=self.overrides)
        except RoofcastError as error:
            return f"its report cannot be read: {error}"
        return "" if (table["status"] == "ok").any() else "no request succeeded"


def _run(command: Sequence[str], log: Path, limit_s: float, environment: Mapping[str, str]) -> int | None:
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  (the user's own command)
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _remove_text(text: str, files: Sequence[Path]) -> None:
    for file in files:
        if file.exists():
            file.write_bytes(file.read_bytes().replace(text.encode(), b""))


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return without_login(lines[-1])[:_N_LOG_CHARACTER] if lines else "it printed nothing"


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
