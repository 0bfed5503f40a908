"""Order of accelerators of one chip: with more memory, bandwidth or links, the same job is not slower.

H200 is H100 with other memory. Its effects are learnt from a fiftieth of the runs, so that they may contradict the
order; where nothing was measured on the job's stack and accelerator, the chip's best-measured accelerator is a limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from roofcast.data.catalog import Catalog
from roofcast.data.specs import AcceleratorSpec
from roofcast.features.jobs.plan_enumeration import PlanChoice
from roofcast.features.jobs.run_columns import JobRuns
from roofcast.features.jobs.run_table import build_jobs
from roofcast.features.jobs.step.job_memory import estimate_memory
from roofcast.features.jobs.step.step import estimate_training
from roofcast.features.queries import RowIndex
from roofcast.training.jobs.job_table import JobTable


@dataclass(frozen=True)
class ChipPeers:
    """Jobs as they would run, with the same plans, on the best-measured accelerator of their chip.

    `is_least`: shape (n_peer,): whether its rate is the least that the job's may be, else the greatest.
    """

    rows: RowIndex
    table: JobTable
    is_least: npt.NDArray[np.bool_]


def chip_peers(
    table: JobTable, catalog: Catalog, n_run: Mapping[str, int], at: npt.NDArray[np.bool_]
) -> ChipPeers | None:
    """Return the peers of the jobs at `at` whose chip has a better-measured accelerator; None if there is none.

    `at`: shape (n_job,).
    """
    names = table.text("accelerator")
    best = {name: _best_measured(catalog.accelerators[name], catalog, n_run) for name in set(names[at])}
    order = {name: _order(catalog.accelerators[name], peer) for name, peer in best.items() if peer}
    rows = np.flatnonzero(at & np.isin(names, [name for name, sign in order.items() if sign]))
    if not len(rows):
        return None
    part, own = table.take(rows), names[rows]
    peer_ids = [peer.id for name in own if (peer := best[name])]
    rows_of_peer = part.measurements.assign(accelerator=peer_ids)
    jobs = build_jobs(rows_of_peer, catalog.models, catalog.accelerators).of_table
    runs = JobRuns(jobs.model, jobs.hardware, jobs.job, part.runs.plan)
    choice = PlanChoice(runs, estimate_training(runs), estimate_memory(runs), part.choice.fits, part.choice.n_plan)
    return ChipPeers(
        rows,
        replace(part, measurements=rows_of_peer, jobs=jobs, choice=choice),
        np.array([order[n] > 0 for n in own]),
    )


def _best_measured(spec: AcceleratorSpec, catalog: Catalog, n_run: Mapping[str, int]) -> AcceleratorSpec | None:
    peers = [one for one in catalog.accelerators.values() if _is_same_chip(one, spec)]
    best = max(peers, key=lambda one: n_run.get(one.id, 0), default=spec)
    return best if n_run.get(best.id, 0) > n_run.get(spec.id, 0) else None


def _is_same_chip(one: AcceleratorSpec, other: AcceleratorSpec) -> bool:
    return (one.architecture, one.peak_flop_per_s, one.tdp_w) == (
        other.architecture, other.peak_flop_per_s, other.tdp_w,
    ) and one.tdp_w is not None  # fmt: skip


def _order(one: AcceleratorSpec, other: AcceleratorSpec) -> int:
    values, others = (
        np.array([a.bandwidth_byte_per_s, a.memory_byte, a.link_bandwidth_byte_per_s, a.link_domain_size])
        for a in (one, other)
    )
    if (values == others).all():
        return 0
    return int((values >= others).all()) - int((values <= others).all())
