"""Nanotron's sweep: the last of several runs of one configuration and outcome counts."""

from collections.abc import Iterator

from builders.published import Record


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the runs, with the number of a later run that repeats them."""
    runs = list(published)
    by_job = sorted(runs, key=lambda run: int(run.cells["job_id"]))
    last = {(run.cells["name"], run.cells["status"]): run.cells["job_id"] for run in by_job}
    for run in runs:
        job = last[run.cells["name"], run.cells["status"]]
        yield run.having(later="" if job == run.cells["job_id"] else job)
