"""Repair of devices, parallelism and load of `silicon_sample.csv`, without use of outcomes.

Two of its tables multiply tensor by expert parallelism (``tp8_ep8`` has a tensor parallelism of 64), a third does
not; ids and the public configurations distinguish them.
"""

import dataclasses
from typing import Final

from builders.campaigns.silicon.history import History
from builders.campaigns.silicon.source import SourceRow
from builders.campaigns.silicon.workers import Stage, Workers, workers_of
from roofcast.data.importers.inferencemax import MEAN_LENGTH_RATIO

NODE: Final = 8
"""Maximum accelerators of one InferenceX worker; a larger number is the total of a disaggregated deployment."""


@dataclasses.dataclass(frozen=True)
class Geometry:
    """Devices and parallelism of a row; None for unknown values.

    For a disaggregated deployment, `tp`, `dp` and `ep` are those of one decode worker.
    """

    n_accelerator: int
    tp: int | None = None
    dp: int | None = None
    ep: int | None = None
    n_prefill: int | None = None
    n_decode: int | None = None
    split: str = ""

    @property
    def moe_tp(self) -> int | None:
        """Tensor parallelism of each expert."""
        n_worker = (self.tp or 0) * (self.dp or 0)
        return n_worker // self.ep if self.ep and n_worker else None


def label_of(row: SourceRow) -> tuple[int, int]:
    """Return devices and expert parallelism of an aggregated InferenceX row, from its id or its columns.

    Examples
    --------
    >>> cells = {"id": "x_tp8_ep8_1", "tp_size": "64", "moe_tp_size": "8", "moe_ep_size": "8"}
    >>> label_of(SourceRow(1, "2026-04-06.csv", cells))
    (8, 8)
    """
    if row.label:
        return row.label
    tp, dp, moe_tp, ep = (max(row.count(name), 1) for name in _AGGREGATED)
    if moe_tp > 1 and ep > 1 and tp * dp == moe_tp * ep:
        return moe_tp, ep
    if _is_vllm_product(row):
        return tp, ep // tp
    return tp * dp, ep


_AGGREGATED: Final = ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")


def geometry_of(row: SourceRow, history: History) -> Geometry | None:
    """Return devices and parallelism of a row; None for a disaggregated row with unknown worker counts."""
    if row.is_disaggregated:
        return _disaggregated(row)
    return _inferencex(row, history) if row.is_inferencex else _lab(row)


def concurrency_of(row: SourceRow, geometry: Geometry) -> int:
    """Return the requests in flight on the devices of the row.

    A stated concurrency above the batch capacity of one deployment is the total of several replicas.
    """
    if row.is_disaggregated:
        n_rank = row.count("decode_num_workers") * max(row.count("decode_attention_dp_size"), 1)
        return row.concurrency or row.count("decode_batch_size") * n_rank
    batch = row.count("batch_size") * (geometry.dp or 1)
    if row.concurrency is None:
        return batch
    return row.concurrency if row.is_inferencex else min(row.concurrency, batch)


def n_replica_of(row: SourceRow, geometry: Geometry) -> int:
    """Return the number of replicas that share the stated concurrency."""
    return max((row.concurrency or 0) // concurrency_of(row, geometry), 1)


def lengths_of(row: SourceRow) -> tuple[float, float]:
    """Return the mean input and output length in tokens."""
    factor = MEAN_LENGTH_RATIO if row.is_inferencex else 1.0
    return round(int(row.cells["isl"]) * factor, 1), round(int(row.cells["osl"]) * factor, 1)


def _inferencex(row: SourceRow, history: History) -> Geometry:
    n, ep = label_of(row)
    if n > NODE:
        return Geometry(n, split="split over prefill and decode unknown")
    has_dp = row.count("attention_dp_size") > 1
    if _is_vllm_product(row):
        has_dp = any(setting.dp_attention for setting in history.matches(row, (n, ep)))
    return Geometry(n, tp=1 if has_dp else n, dp=n if has_dp else 1, ep=ep)


def _is_vllm_product(row: SourceRow) -> bool:
    tp, ep = row.count("tp_size"), row.count("moe_ep_size")
    return row.cells["backend"] == "vllm" and 1 < tp == row.count("attention_dp_size") and ep == tp * tp


def _lab(row: SourceRow) -> Geometry:
    tp, dp, moe_tp, ep = (max(row.count(name), 1) for name in _AGGREGATED)
    n = max(tp * dp, moe_tp * ep)
    is_moe = moe_tp * ep > 1
    is_dp_unstated = row.cells["attention_dp_size"] == "" and is_moe and n == tp > 1
    if is_dp_unstated and row.concurrency == row.count("batch_size") * tp:
        tp = 1
    return Geometry(n, tp=tp, dp=n // tp, ep=ep)


def _disaggregated(row: SourceRow) -> Geometry | None:
    workers = _stated_workers(row) or workers_of(row)
    if workers is None:
        return None
    decode = workers[1]
    sizes = [stage.n_worker * stage.n_device for stage in workers]
    texts = [
        f"{name} {stage.n_worker} x TP{stage.tp} DP{stage.dp}"
        for name, stage in zip(("prefill", "decode"), workers, strict=True)
    ]
    return Geometry(
        n_accelerator=sum(sizes),
        tp=decode.tp,
        dp=decode.dp,
        ep=decode.ep or None,
        n_prefill=sizes[0],
        n_decode=sizes[1],
        split=", ".join(texts),
    )


def _stated_workers(row: SourceRow) -> Workers | None:
    stages = []
    for stage in ("prefill", "decode"):
        tp, dp = (max(row.count(f"{stage}_{name}"), 1) for name in ("tp_size", "attention_dp_size"))
        n_worker = row.count(f"{stage}_num_workers")
        stages.append(Stage(n_worker, tp, dp, row.count(f"{stage}_moe_ep_size")))
    return (stages[0], stages[1]) if all(stage.n_worker for stage in stages) else None
