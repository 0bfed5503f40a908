"""vLLM's benchmark in public threads: issues, pull requests and pages of some 40 stacks."""

from collections.abc import Iterator
from typing import Final

from builders.campaigns.threads import read_runs, rejection_of, rows
from builders.published import Record

__all__ = ["records", "rows"]

OWNERS: Final = {"tt": "tenstorrent", "tpu": "wyzhang"}
"""Owner by the first part of a stack's name, where it differs."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the runs with owner and rig of their stack, which is named such as ``tt-n300``."""
    for run in read_runs(published):
        owner, _, rig = run.cells["stack"].partition("-")
        doubt = run.cells["doubt"]
        rejection = ("doubtful", doubt) if "taken as" in doubt or "inferred" in doubt else rejection_of(run.cells)
        yield run.rejected(*rejection) if rejection else run.having(stack_name=f"{OWNERS.get(owner, owner)}/{rig}")
