"""Result files of InferenceMAX, now InferenceX: a flat JSON object a run, or a list of them.

Latencies are in seconds, throughputs per accelerator: output throughput per decode accelerator, input throughput per
prefill accelerator. `isl` and `osl` are nominal: lengths are drawn uniformly from 0.8 to 1 times them, so the mean is
0.9 times. Early results hold no lengths: a file name such as ``agg_dsr1_1k8k.json`` has them, or overrides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final

from roofcast.data.importers.client_runs import Run, join_cells, model_cells, run_reader
from roofcast.data.importers.format import Format
from roofcast.data.importers.inferencemax.deployment import Deployment, accelerator_of, deployment_of, flag
from roofcast.data.importers.inferencemax.vocabulary import (
    LATENCIES,
    LENGTH_VARIATION,
    MEAN_LENGTH_RATIO,
    MODELS,
    STATISTICS,
    engine_of,
    streams_tokens,
)
from roofcast.data.importers.json_input import Node, check_keys, json_marks, read_json
from roofcast.data.importers.layout import Field, read_statistics
from roofcast.data.importers.sources import Source
from roofcast.data.specs import PRECISIONS

REQUIRED: Final = ("hw", "conc", "model", "framework", "precision", "tput_per_gpu", "output_tput_per_gpu")
SPECULATIONS: Final = {
    "": "", "none": "", "off": "", "mtp": "mtp", "on": "mtp", "eagle": "eagle", "draft_model": "draft",
    "ngram": "ngram",
}  # fmt: skip
"""Our names by `spec_decoding`, or by `mtp` in early results."""

INVERSE_TOLERANCE: Final = 0.02
_NAMES: Final = {statistic: (name,) for statistic, name in STATISTICS.items()}
_FIELDS: Final = tuple(Field(column, f"{{}}_{name}") for column, name in LATENCIES.items())
_LENGTHS: Final = re.compile(r"(?:^|_)(\d{1,3})k(\d{1,3})k(?=[_.]|$)")
_VERSION: Final = re.compile(r":v?(\d+\.\d+\.\d+(?:\.?(?:rc|post|dev|a|b)\d+)*)(?![\d.])")
_PRECISIONS: Final = {"nvfp4": "fp4", "mxfp4": "fp4"}
_TOKEN_PER_K: Final = 1024.0


def _runs(source: Source) -> Iterator[Run]:
    document = read_json(source)
    results = document.items() if document.is_array else [document]
    if not results:
        raise document.error("holds no result")
    yield from map(_run, results)


def _run(result: Node) -> Run:
    check_keys(result, REQUIRED, "InferenceMAX")
    deployment = deployment_of(result)
    cells = join_cells(_context(result), deployment.cells, _lengths(result))
    is_token = streams_tokens(cells["engine"], cells["accelerator"])
    statistics = read_statistics(result, [one for one in _FIELDS if is_token or one.column != "itl_s"], _NAMES)
    _check_inverse(result)
    place = f"{result.place}: {result.path}" if result.path else result.place
    return Run(place, result.line, cells, statistics, _totals(result, deployment))


def _context(result: Node) -> dict[str, Any]:
    name, framework, image = (result[key].text() for key in ("model", "framework", "image"))
    engine = engine_of(framework)
    version = _VERSION.search(image) if framework.lower() in ("vllm", "sglang", "trt") else None
    return join_cells(
        model_cells(MODELS.get(name, name)),
        {
            "accelerator": accelerator_of(result["hw"].text()),
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
    precision = _PRECISIONS.get(name, name)
    if precision not in PRECISIONS:
        raise node.error(f"must be one of {', '.join(PRECISIONS)}, got {name[:60]!r}")
    return precision


def _speculation(result: Node) -> str:
    node = result["spec_decoding"] if not result["spec_decoding"].is_blank else result["mtp"]
    name = ("on" if flag(node) else "off") if isinstance(node.value, bool) else node.text().lower()
    if name not in SPECULATIONS:
        raise node.error(f"must be one of {', '.join(filter(None, SPECULATIONS))}, got {name[:60]!r}")
    return SPECULATIONS[name]


def _lengths(result: Node) -> dict[str, Any]:
    nominal = [result[key].number() for key in ("isl", "osl")]
    match = _LENGTHS.search(result.place.rpartition(":")[2])
    if match and all(map(math.isnan, nominal)):
        nominal = [float(match[1]) * _TOKEN_PER_K, float(match[2]) * _TOKEN_PER_K]
    if any(map(math.isnan, nominal)):
        return {}
    for key, length in zip(("isl", "osl"), nominal, strict=True):
        if length < 1:
            raise result[key].error("must be at least 1: runs of agents have no fixed lengths and are not read")
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
    for name in STATISTICS.values():
        tpot_s, speed = result[f"{name}_tpot"].number(), result[f"{name}_intvty"].number()
        if abs(tpot_s * speed - 1.0) > INVERSE_TOLERANCE:
            problem = f"{tpot_s:.4g} s is not the inverse of {name}_intvty = {speed:.4g}; is it in seconds?"
            raise result[f"{name}_tpot"].error(problem)


FORMAT: Final = Format(
    name="inferencemax",
    title="InferenceMAX / InferenceX, its JSON results",
    recognises=json_marks("tput_per_gpu", "hw", "framework", "conc", opening=(b"{", b"[")),
    read=run_reader(_runs),
    suffixes=(".json",),
    statistics=tuple(STATISTICS),
    conversions={
        "ttft_s": "`*_ttft`: in s",
        "itl_s": "`*_itl`: in s; not where the engine sends several tokens at once (TensorRT-LLM, SGLang on NVIDIA)",
        "tpot_s": "`*_tpot`: in s; `*_intvty` is its inverse and must agree",
        "e2e_s": "`*_e2el`: in s",
        "output_throughput_token_per_s": "`output_tput_per_gpu` x accelerators that decode",
        "total_throughput_token_per_s": "`tput_per_gpu` x accelerators",
        "power_w": "`avg_total_gpu_power_w`, or `avg_power_w` x accelerators, unless `power_valid` is 0",
    },
)
"""The entry of the registry."""
