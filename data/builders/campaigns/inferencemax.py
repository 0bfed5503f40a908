"""Lengths, devices and latencies of InferenceMAX's published results and of the runs whose log is available."""

import re
from collections.abc import Iterator
from typing import Any, Final

from builders.campaigns.silicon.scripts import Launch, Served
from builders.published import Cells, Record
from roofcast.data.catalog import load_catalog
from roofcast.data.errors import SchemaError
from roofcast.data.importers.inferencemax import (
    LENGTH_VARIATION,
    MEAN_LENGTH_RATIO,
    MODELS,
    REQUESTS_PER_SLOT,
    engine_of,
    n_decode_accelerator,
    streams_tokens,
)
from roofcast.data.units import S_PER_MS

_NOMINAL: Final = {"1k": 1024, "8k": 8192}
_RUN_NAME: Final = re.compile(
    r"\w+?_(?P<isl>\dk)(?P<osl>\dk)_(?P<precision>fp\d)_(?P<framework>\w+)_tp(?P<tp>\d+)_ep(?P<ep>\d+)"
    r"_dpa_(?P<dp_attention>true|false)_conc(?P<conc>\d+)_(?P<hw>[\w-]+)\.json"
)


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the results with what follows from them.

    Raises `SchemaError` if a file's name does not contain the request lengths, or a log's the configuration.
    """
    for record in published:
        cells = _logged(record) if "file" in record.cells else _official(record.cells)
        result: dict[str, Any] = {**record.cells, **cells}
        yield Record(result["note"], result | _devices(result))


def _official(cells: Cells) -> dict[str, Any]:
    lengths = re.search(r"_(\dk)(\dk)\.json$", cells["@file"])
    if lengths is None:
        raise SchemaError("results", "must be in a file named after its lengths such as 1k8k", cells["@file"])
    nominal = [_NOMINAL[length] for length in lengths.groups()]
    n_input, n_output = (round(length * MEAN_LENGTH_RATIO, 1) for length in nominal)
    return {
        "n_input": n_input,
        "n_output": n_output,
        "nominal": nominal,
        "latency": cells,
        "day": "2025-11",
        "note": cells["@file"],
    }


def _logged(record: Record) -> dict[str, Any]:
    run, line = record.cells, record.cells["@line"]
    name = _RUN_NAME.fullmatch(run["file"])
    if name is None:
        problem = f"does not contain the configuration, got {run['file']!r}"
        raise SchemaError("file", problem, run["@file"], line)
    n, day = int(name["tp"]), run["date"]
    return {
        **{key: name[key] for key in ("hw", "framework", "precision", "dp_attention")},
        **{key: int(name[key]) for key in ("tp", "ep", "conc")},
        "nominal": [_NOMINAL[name[key]] for key in ("isl", "osl")],
        "model": run["model_id"], "output_tput_per_gpu": run["output_throughput"] / n,
        "tput_per_gpu": run["total_token_throughput"] / n, "n_failed": run["num_prompts"] - run["completed"],
        "n_input": run["total_input_tokens"] / run["completed"],
        "n_output": run["total_output_tokens"] / run["completed"],
        "latency": {key.removesuffix("_ms"): value * S_PER_MS for key, value in run.items() if key.endswith("_ms")},
        "day": f"{day[:4]}-{day[4:6]}-{day[6:8]}", "note": f"{run['@file']}, line {line}",
    }  # fmt: skip


def _devices(result: Cells) -> dict[str, Any]:
    framework, n = result["framework"], int(result["tp"])
    is_disaggregated = framework.startswith("dynamo-")
    n_decode = n_decode_accelerator(result, n) if is_disaggregated else None
    system = result["hw"].removesuffix("-trt")
    accelerator = load_catalog().accelerator(system).id
    is_token = streams_tokens(engine_of(framework), accelerator)
    served = Served(
        "gpt-oss" if "gpt-oss" in result["model"].lower() else "deepseek", system, engine_of(framework),
        result["precision"], result["day"], mtp=result.get("mtp") == "on",
    )  # fmt: skip
    n_input, n_output = result["nominal"]
    run = Launch(n_input, n_output, result["conc"], n, has_dp=result["dp_attention"] == "true")
    return {
        **({} if is_disaggregated else served.settings(run) or {}),
        "model_name": MODELS.get(result["model"], result["model"]), "engine": engine_of(framework), "n": n,
        "n_decode": n_decode, "n_prefill": n - n_decode if n_decode else None,
        "dp": n if result["dp_attention"] == "true" else 1, "length_variation": LENGTH_VARIATION,
        "moe_tp": None if is_disaggregated else n // int(result["ep"]),
        "n_request": None if is_disaggregated else REQUESTS_PER_SLOT * result["conc"],
        "output_rate": result["output_tput_per_gpu"] * (n_decode or n), "total_rate": result["tput_per_gpu"] * n,
        "latency": {key: value for key, value in result["latency"].items() if is_token or not key.endswith("_itl")},
    }  # fmt: skip
