"""Result files of InferenceMAX, now InferenceX: a flat JSON object a run, or a list of them.

Latencies are in seconds, throughputs per accelerator: output throughput per decode accelerator, input throughput per
prefill accelerator. `isl` and `osl` are nominal: lengths are drawn uniformly from 0.8 to 1 times them, so the mean is
0.9 times. Early results hold no lengths: a file name such as ``agg_dsr1_1k8k.json`` has them, or overrides.

Aggregates of agents (``scenario_type`` agentic-coding) hold measured lengths, rates of all accelerators together, the
hit rate of the server's prefix cache, and per-request means of the gaps, our TPOT; early ones are flat.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import SchemaError, UnknownNameError
from roofcast.data.importers.client_runs import Run, join_cells, model_cells
from roofcast.data.importers.format import Format
from roofcast.data.importers.json_input import Node, check_keys, read_json
from roofcast.data.importers.layout import layout
from roofcast.data.importers.sources import Source
from roofcast.data.measurements.speculation import NAMES
from roofcast.data.precision_names import parse_precision
from roofcast.data.specs import PRECISIONS

MEAN_LENGTH_RATIO: Final = 0.9
"""Ratio of the mean request length to the nominal one: lengths are uniform from 0.8 to 1 times the nominal length."""

LENGTH_VARIATION: Final = round(0.2 / math.sqrt(12) / MEAN_LENGTH_RATIO, 6)
"""Coefficient of variation of the request lengths."""

REQUESTS_PER_SLOT: Final = 10
"""Requests of a run for each of its concurrent ones, as the suite's scripts set it."""


MODELS: Final = {"/mnt/lustre01/models/deepseek-r1-0528-fp4-v2": "nvidia/DeepSeek-R1-0528-FP4-V2"}
"""Models by their path on the benchmark's machines."""

_ENGINES: Final = {"trt": "trtllm", "tensorrt-llm": "trtllm"}


def engine_of(framework: str) -> str:
    """Return the engine of a framework's name, without its orchestrator.

    Examples
    --------
    >>> engine_of("trt"), engine_of("dynamo-sglang"), engine_of("vllm-disagg")
    ('trtllm', 'sglang', 'vllm')
    """
    name = framework.strip().lower().removeprefix("dynamo-").removeprefix("mori-").removesuffix("-disagg")
    return _ENGINES.get(name, name)


def streams_tokens(engine: str, accelerator: str) -> bool:
    """Return whether each streamed chunk holds one token; TensorRT-LLM, and SGLang on NVIDIA, send 10 to 50 at once.

    Examples
    --------
    >>> streams_tokens("sglang", "amd-mi355x-288gb"), streams_tokens("sglang", "nvidia-h200-sxm-141gb")
    (True, False)
    """
    return engine == "vllm" or (engine == "sglang" and accelerator.startswith("amd-"))


def n_decode_accelerator(total: Mapping[str, float], n: int) -> int:
    """Return the number of decode accelerators among the `n` of a disaggregated deployment.

    Input throughput is published per prefill accelerator, output throughput per decode accelerator, and the total per
    accelerator; only one number of decode accelerators makes the three agree.

    Raises `SchemaError` if no whole number makes them agree.

    Examples
    --------
    >>> n_decode_accelerator({"tput_per_gpu": 15.0, "input_tput_per_gpu": 30.0, "output_tput_per_gpu": 10.0}, 12)
    9
    """
    both, prefill, decode = (total[f"{part}tput_per_gpu"] for part in ("", "input_", "output_"))
    exact = n * (both - prefill) / (decode - prefill) if decode != prefill else -1.0
    if not 0 < exact < n or abs(exact - round(exact)) > 0.01 or not 0 < round(exact) < n:
        raise SchemaError("tput_per_gpu", f"fits no whole number of decode accelerators among {n}, got {exact:g}")
    return round(exact)


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


def _deployment_of(result: Node) -> Deployment:
    if _flag(result["is_multinode"]) or not result["num_prefill_gpu"].is_blank:
        return _over_nodes(result)
    if result["framework"].text().lower().startswith("dynamo-"):
        return _disaggregated_total(result)
    return _aggregated(result, "", _whole_number(result["tp"]))


def _accelerator_of(name: str) -> str:
    """Return the catalogue id of a runner's name, by its longest known prefix; the name itself if there is none.

    Examples
    --------
    >>> _accelerator_of("b200-trt"), _accelerator_of("cluster:x")
    ('nvidia-b200-sxm-180gb', 'cluster:x')
    """
    parts = name.lower().split("-")
    for n_part in range(min(len(parts), 8), 0, -1):
        try:
            return load_catalog().accelerator("-".join(parts[:n_part])).id
        except UnknownNameError:
            continue
    return name


def _flag(node: Node) -> bool:
    value = str(node.value).strip().lower() if isinstance(node.value, str | bool) else node.value
    if value in (None, "", "false", "off"):
        return False
    if value not in ("true", "on"):
        raise node.error("must be true or false")
    return True


def _whole_number(node: Node, least: int = 1) -> int:
    number = node.number()
    if math.isnan(number) or number != int(number) or not least <= number <= MAX_ACCELERATOR:
        raise node.error(f"must be a whole number from {least} to {MAX_ACCELERATOR}, got {number:g}")
    return int(number)


def _aggregated(result: Node, part: str, n_group: int) -> Deployment:
    pp, cp = (_or_one(result[f"{part}{name}"]) for name in ("pp", "pcp_size"))
    has_dp = _flag(result[f"{part}dp_attention"])
    ep = _whole_number(result[f"{part}ep"]) if not result[f"{part}ep"].is_blank else None
    n_worker = max(_whole_number(result[f"{part}num_workers"], least=0), 1) if part else 1
    n = n_group * pp * cp * n_worker
    cells: dict[str, Any] = {"n_accelerator": n, "tp": 1 if has_dp else n_group, "pp": pp, "cp": cp}
    cells["dp"] = (n_group if has_dp else 1) * n_worker
    if ep is not None:
        cells |= {"ep": ep} | ({"moe_tp": n_group // ep} if n_group % ep == 0 else {})
    return Deployment(cells, n, n, n)


def _over_nodes(result: Node) -> Deployment:
    n_prefill = _whole_number(result["num_prefill_gpu"])
    n_decode = _whole_number(result["num_decode_gpu"], least=0)
    kinds = {_accelerator_of(result[key].text()) for key in ("prefill_hw", "decode_hw")} - {""}
    if len(kinds) > 1:
        raise result["decode_hw"].error(f"must be the accelerator of the prefill, got {' and '.join(sorted(kinds))}")
    if n_decode == 0:
        deployment = _aggregated(result, "prefill_", _whole_number(result["prefill_tp"]))
        if deployment.n != n_prefill:
            problem = f"must be workers x TP x PP x CP = {deployment.n}, got {n_prefill}"
            raise result["num_prefill_gpu"].error(problem)
        return deployment
    if not _flag(result["disagg"]):
        raise result["disagg"].error(f"must be true where {n_decode} accelerators decode and {n_prefill} prefill")
    note = "; ".join(_workers(result))
    return _split(n_prefill, n_decode, note)


def _disaggregated_total(result: Node) -> Deployment:
    n = _whole_number(result["tp"])
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
        n_worker, tp, ep = (_whole_number(result[f"{part}_{name}"]) for name in ("num_workers", "tp", "ep"))
        dp = ", data-parallel attention" if _flag(result[f"{part}_dp_attention"]) else ""
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
    return 1 if node.is_blank else _whole_number(node)


THROUGHPUTS: Final = ("tput_per_gpu", "output_tput_per_gpu")
INVERSE_TOLERANCE: Final = 0.02
_LENGTHS: Final = re.compile(r"(?:^|_)(\d{1,3})k(\d{1,3})k(?=[_.]|$)")
_VERSION: Final = re.compile(r":v?(\d+\.\d+\.\d+(?:\.?(?:rc|post|dev|a|b)\d+)*)(?![\d.])")
_TOKEN_PER_K: Final = 1024.0


def _runs(source: Source) -> Iterator[Run]:
    document = read_json(source)
    results = document.items() if document.is_array else [document]
    if not results:
        raise document.error("holds no result")
    yield from map(_run, results)


def _run(result: Node) -> Run:
    layout("inferencemax").cells(result)
    if not result["scenario_type"].is_blank and result["tput_per_gpu"].is_blank:
        return _agents_run(result)
    check_keys(result, THROUGHPUTS, "InferenceMAX")
    deployment = _deployment_of(result)
    _check_sum(result, deployment)
    cells = join_cells(_context(result), deployment.cells, _lengths(result))
    is_token = streams_tokens(cells["engine"], cells["accelerator"])
    statistics = layout("inferencemax").statistics(result)
    if not is_token:
        statistics = {name: outcomes | {"itl_s": math.nan} for name, outcomes in statistics.items()}
    _check_inverse(result)
    place = f"{result.place}: {result.path}" if result.path else result.place
    return Run(place, result.line, cells, statistics, _totals(result, deployment))


def _agents_run(result: Node) -> Run:
    deployment = _deployment_of(result)
    tables = layout("inferencemax_agents")
    values = tables.cells(result)
    n_done, n_error = (values.pop(name) for name in ("n_request", "n_failed"))
    cells = join_cells(
        _context(result),
        deployment.cells,
        tables.lengths(result),
        values,
        {"n_request": n_done + np.nan_to_num(n_error), "n_failed": n_error},
        {"note": "agents: prompts that grow turn by turn"},
    )
    return tables.run(result, cells)


def _context(result: Node) -> dict[str, Any]:
    name, framework, image = (result[key].text() for key in ("model", "framework", "image"))
    engine = engine_of(framework)
    version = _VERSION.search(image) if framework.lower() in ("vllm", "sglang", "trt") else None
    return join_cells(
        model_cells(MODELS.get(name, name)),
        {
            "accelerator": _accelerator_of(result["hw"].text()),
            "engine": engine,
            "engine_version": version[1] if version else "",
            "weight_precision": _precision(result["precision"]),
            "speculation": _speculation(result),
            "load": "closed_loop",
            "concurrency": result["conc"].required_number(),
            "software": image or ("NVIDIA Dynamo" if framework.lower().startswith("dynamo-") else ""),
        },
    )


def _precision(node: Node) -> str:
    name = node.text().lower()
    precision = parse_precision(name)
    if not precision:
        raise node.error(f"must be one of {', '.join(PRECISIONS)}, got {name[:60]!r}")
    return precision


def _speculation(result: Node) -> str:
    node = result["spec_decoding"] if not result["spec_decoding"].is_blank else result["mtp"]
    name = ("on" if _flag(node) else "off") if isinstance(node.value, bool) else node.text().lower()
    if name not in NAMES:
        raise node.error(f"must be one of {', '.join(filter(None, NAMES))}, got {name[:60]!r}")
    return NAMES[name]


def _lengths(result: Node) -> dict[str, Any]:
    nominal = [result[key].number() for key in ("isl", "osl")]
    match = _LENGTHS.search(result.place.rpartition(":")[2])
    if match and all(map(math.isnan, nominal)):
        nominal = [float(match[1]) * _TOKEN_PER_K, float(match[2]) * _TOKEN_PER_K]
    if any(map(math.isnan, nominal)):
        return {}
    for key, length in zip(("isl", "osl"), nominal, strict=True):
        if length < 1:
            raise result[key].error("must be at least 1")
    mean = [round(length * MEAN_LENGTH_RATIO, 1) for length in nominal]
    note = f"nominal lengths {nominal[0]:g} and {nominal[1]:g}"
    lengths = {"n_input_token": mean[0], "n_output_token": mean[1], "length_variation": LENGTH_VARIATION}
    return {**lengths, "note": note}


def _totals(result: Node, deployment: Deployment) -> dict[str, float]:
    output, total = (result[name].required_number() for name in ("output_tput_per_gpu", "tput_per_gpu"))
    return {
        "output_throughput_token_per_s": output * deployment.n_output,
        "total_throughput_token_per_s": total * deployment.n,
        "power_w": _power_w(result, deployment.n),
    }


def _power_w(result: Node, n: int) -> float:
    is_valid = result["power_valid"].is_blank or result["power_valid"].value in (1, True)
    of_all, of_one = (result[name].number() for name in ("avg_total_gpu_power_w", "avg_power_w"))
    if not is_valid:
        return math.nan
    return of_one * n if math.isnan(of_all) else of_all


def _check_inverse(result: Node) -> None:
    for (name,) in layout("inferencemax").names.values():
        tpot_s, speed = result[f"{name}_tpot"].number(), result[f"{name}_intvty"].number()
        if abs(tpot_s * speed - 1.0) > INVERSE_TOLERANCE:
            problem = f"{tpot_s:.4g} s is not the inverse of {name}_intvty = {speed:.4g}; is it in seconds?"
            raise result[f"{name}_tpot"].error(problem)


FORMAT: Final = Format("inferencemax", _runs)
"""The entry of the registry."""
