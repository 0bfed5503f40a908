"""Sailor's plans: sizes of a plan whose stages are alike."""

import json
import re
from collections.abc import Iterator
from typing import Final

from builders.published import Record

_GRANULES: Final = re.compile(r'"GH-96", (\d+)')


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the plans with their sizes; plans of several stages' sizes or pipelines lack them."""
    for record in published:
        pipeline, *others = record.cells["pipeline_list"]
        granules = _GRANULES.findall(json.dumps(pipeline["tmp_per_stage"]))
        tps, dps = {tp for stage in pipeline["tmp_per_stage"] for _, tp in stage}, set(pipeline["dp"])
        sizes = {"tp": tps.pop(), "dp": dps.pop()} if len(tps) == len(dps) == 1 and not others else {}
        layers = [len(stage) for stage in pipeline["layers_per_stage"]]
        yield record.having(n=sum(map(int, granules)), stages=pipeline["num_stages"], layers=layers, **sizes)
