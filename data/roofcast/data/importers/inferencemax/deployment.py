"""Deployment of an InferenceMAX result: accelerators, parallelism, and the divisors of its throughputs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import SchemaError, UnknownNameError
from roofcast.data.importers.inferencemax.vocabulary import n_decode_accelerator
from roofcast.data.importers.json_input import Node

SUM_TOLERANCE: Final = 0.01
"""Relative tolerance between total throughput and the sum of input and output throughput."""

MAX_ACCELERATOR: Final = 100_000


@dataclass(frozen=True)
class Deployment:
    """Columns of a deployment, and the accelerators by which its total, input and output throughput are divided."""

    cells: dict[str, Any]
    n: int
    n_input: int
    n_output: int


def deployment_of(result: Node) -> Deployment:
    """Return the deployment of a result.

    Raises
    ------
    SchemaError
        If a count is missing or no whole number, prefill and decode run on different accelerators, or the three
        throughputs contradict the counts.
    """
    if flag(result["is_multinode"]) or not result["num_prefill_gpu"].is_blank:
        deployment = _over_nodes(result)
    elif result["framework"].text().lower().startswith("dynamo-"):
        deployment = _disaggregated_total(result)
    else:
        deployment = _aggregated(result, "", whole_number(result["tp"]))
    _check_sum(result, deployment)
    return deployment


def accelerator_of(name: str) -> str:
    """Return the catalogue id of a runner's name, by its longest known prefix; the name itself if there is none.

    Examples
    --------
    >>> accelerator_of("b200-trt"), accelerator_of("cluster:x")
    ('nvidia-b200-sxm-180gb', 'cluster:x')
    """
    parts = name.lower().split("-")
    for n_part in range(min(len(parts), 8), 0, -1):
        try:
            return load_catalog().accelerator("-".join(parts[:n_part])).id
        except UnknownNameError:
            continue
    return name


def flag(node: Node) -> bool:
    """Return whether a switch is on, written as a boolean or a name; off if blank.

    Raises
    ------
    SchemaError
        If it is neither.
    """
    value = str(node.value).strip().lower() if isinstance(node.value, str | bool) else node.value
    if value in (None, "", "false", "off"):
        return False
    if value not in ("true", "on"):
        raise node.error("must be true or false")
    return True


def whole_number(node: Node, least: int = 1) -> int:
    """Return a whole number.

    Raises
    ------
    SchemaError
        If it is blank, no whole number, or out of bounds.
    """
    number = node.number()
    if math.isnan(number) or number != int(number) or not least <= number <= MAX_ACCELERATOR:
        raise node.error(f"must be a whole number from {least} to {MAX_ACCELERATOR}, got {number:g}")
    return int(number)


def _aggregated(result: Node, part: str, n_group: int) -> Deployment:
    pp, cp = (_or_one(result[f"{part}{name}"]) for name in ("pp", "pcp_size"))
    has_dp = flag(result[f"{part}dp_attention"])
    ep = whole_number(result[f"{part}ep"]) if not result[f"{part}ep"].is_blank else None
    n_worker = max(whole_number(result[f"{part}num_workers"], least=0), 1) if part else 1
    n = n_group * pp * cp * n_worker
    cells: dict[str, Any] = {"n_accelerator": n, "tp": 1 if has_dp else n_group, "pp": pp, "cp": cp}
    cells["dp"] = (n_group if has_dp else 1) * n_worker
    if ep is not None:
        cells |= {"ep": ep} | ({"moe_tp": n_group // ep} if n_group % ep == 0 else {})
    return Deployment(cells, n, n, n)


def _over_nodes(result: Node) -> Deployment:
    n_prefill = whole_number(result["num_prefill_gpu"])
    n_decode = whole_number(result["num_decode_gpu"], least=0)
    kinds = {accelerator_of(result[key].text()) for key in ("prefill_hw", "decode_hw")} - {""}
    if len(kinds) > 1:
        raise result["decode_hw"].error(f"must be the accelerator of the prefill, got {' and '.join(sorted(kinds))}")
    if n_decode == 0:
        deployment = _aggregated(result, "prefill_", whole_number(result["prefill_tp"]))
        if deployment.n != n_prefill:
            problem = f"must be workers x TP x PP x CP = {deployment.n}, got {n_prefill}"
            raise result["num_prefill_gpu"].error(problem)
        return deployment
    if not flag(result["disagg"]):
        raise result["disagg"].error(f"must be true where {n_decode} accelerators decode and {n_prefill} prefill")
    note = "; ".join(_workers(result))
    return _split(n_prefill, n_decode, note)


def _disaggregated_total(result: Node) -> Deployment:
    n = whole_number(result["tp"])
    names = ("tput_per_gpu", "input_tput_per_gpu", "output_tput_per_gpu")
    try:
        n_decode = n_decode_accelerator({name: result[name].required_number() for name in names}, n)
    except SchemaError as error:
        raise result[error.field].error(error.problem) if not error.source else error from error
    return _split(n - n_decode, n_decode, "")


def _split(n_prefill: int, n_decode: int, note: str) -> Deployment:
    n = n_prefill + n_decode
    cells = {
        "n_accelerator": n,
        "n_prefill_accelerator": n_prefill,
        "n_decode_accelerator": n_decode,
        "note": note,
    }
    return Deployment(cells, n, n_prefill, n_decode)


def _workers(result: Node) -> Iterator[str]:
    for part in ("prefill", "decode"):
        n_worker, tp, ep = (whole_number(result[f"{part}_{name}"]) for name in ("num_workers", "tp", "ep"))
        dp = ", data-parallel attention" if flag(result[f"{part}_dp_attention"]) else ""
        yield f"{part}: {n_worker} x TP {tp}, EP {ep}{dp}"


def _check_sum(result: Node, deployment: Deployment) -> None:
    input_per_s = result["input_tput_per_gpu"].number()
    if math.isnan(input_per_s):
        return
    total = result["tput_per_gpu"].required_number() * deployment.n
    output_per_s = result["output_tput_per_gpu"].required_number()
    parts = input_per_s * deployment.n_input + output_per_s * deployment.n_output
    if abs(total - parts) > SUM_TOLERANCE * max(total, parts):
        problem = f"{total:.6g} tokens/s of all accelerators are not input and output together, {parts:.6g}"
        raise result["tput_per_gpu"].error(problem)


def _or_one(node: Node) -> int:
    return 1 if node.is_blank else whole_number(node)
