"""MLPerf Training: parallel sizes of the only configuration with a run's nodes."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from builders.figures import number
from builders.published import Record

_CONFIGURATION: Final = re.compile(r"/benchmarks/(\w+)/.*_(\d+)x(\d+)x[^/]*tp(\d+)pp(\d+)cp(\d+)")
"""Path of a submission's configuration: benchmark, nodes, accelerators per node and parallel sizes."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the results; logged parallel sizes stay.

    The table's columns of sizes are not used: they hold the submission's first configuration, maybe of another
    benchmark.
    """
    for record in published:
        yield record.having(**({} if "logged_tp" in record.cells else _sizes(record.cells)))


def _sizes(cells: Mapping[str, Any]) -> dict[str, str]:
    run = cells["benchmark"], number(cells["nodes"]), number(cells["accel_per_node"])
    matches = [match for path in cells["configs"].split(";") if (match := _CONFIGURATION.search(path))]
    found = {match.groups()[3:] for match in matches if (match[1], float(match[2]), float(match[3])) == run}
    return dict(zip(("logged_tp", "logged_pp", "logged_cp"), found.pop(), strict=True)) if len(found) == 1 else {}
