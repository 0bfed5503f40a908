"""Columns of Argonne's figures under one set of names, and runs that cannot have generated all their tokens."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from builders.figures import number_of, round_figure
from builders.published import Cells, Record, RejectionError
from builders.recipe import Row
from roofcast.data.catalog import load_catalog
from roofcast.data.errors import UnknownNameError
from roofcast.data.specs import BYTE_PER_WEIGHT, AcceleratorSpec, ModelSpec

MODELS: Final = {"neuralmagic/Meta-Llama-3-8B-Instruct-FP8": "meta-llama/Meta-Llama-3-8B"}
ACCELERATORS: Final[Mapping[str, str]] = {"Nvidia A100 GPU": "nvidia-a100-sxm-40gb", "SambaNova SN40L": ""}


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the records under the same column names for all files."""
    for record in published:
        cells = {re.sub(r"[\s_]+", " ", name).strip().lower(): text for name, text in record.columns.items()}
        yield Record(record.reference, {**record.cells, **cells, **_named(cells, record.cells["@file"])})


def _named(cells: Cells, file: str) -> dict[str, Any]:
    both, is_gh200 = cells.get("input output length", ""), "GH200" in file
    latency = cells.get("latency") or cells.get("ttft latency", "")
    model = cells.get("model") or cells.get("model name", "")
    return {
        "input": cells.get("input length") or cells.get("max input length") or both,
        "output": cells.get("output length") or cells.get("max output len") or both,
        "hardware": cells.get("hardware") or ("Nvidia GH200 GPU" if is_gh200 else ""),
        "batch": cells.get("batch size", ""),
        "n": cells.get("num of hardware") or cells.get("tensor parallel") or cells.get("tp size", "1"),
        "model": model, "model_id": MODELS.get(model, model), "latency": latency,
        "latency_key": round_figure(number_of(latency)), "has_ttft": "ttft latency" in cells,
        "framework": cells.get("framework") or ("vLLM" if is_gh200 else "TensorRT-LLM"),
    }  # fmt: skip


def rows(cells: Cells, common: Row) -> list[Row]:
    """Return the throughputs of the batch.

    Raises `RejectionError` if the run is longer than the model's context, or faster than the weights can be read.
    """
    latency_s, n_output = common["e2e_s"], common["n_output_token"]
    _check(cells, common)
    return [
        {
            "output_throughput_token_per_s": common["concurrency"] * n_output / latency_s,
            "total_throughput_token_per_s": common["concurrency"] * (common["n_input_token"] + n_output) / latency_s,
        }
    ]


def _check(cells: Cells, common: Row) -> None:
    catalog = load_catalog()
    try:
        model = catalog.model(cells["model_id"])
        accelerator = catalog.accelerator(ACCELERATORS.get(cells["hardware"], cells["hardware"]))
    except UnknownNameError:
        return
    n_token = common["n_input_token"] + common["n_output_token"]
    if model.max_context_token and n_token > model.max_context_token:
        raise RejectionError("beyond_context", f"{n_token:g} tokens, the model holds {model.max_context_token}")
    read_s = weight_read_s(model, accelerator, int(common["n_accelerator"]), common["weight_precision"])
    least_s, latency_s = common["n_output_token"] * read_s, common["e2e_s"]
    if latency_s < least_s and "speculation" not in common:
        detail = f"{latency_s:.3g} s; reading the weights for each token takes {least_s:.3g} s"
        raise RejectionError("faster_than_weights", detail)


def weight_read_s(model: ModelSpec, accelerator: AcceleratorSpec, n_accelerator: int, precision: str) -> float:
    """Return the lower bound of a decode step: the active weights read once at full memory bandwidth.

    Untied input embeddings are excluded, because a step reads one row of them.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> catalog = load_catalog()
    >>> llama, h100 = catalog.model("Llama-2-7b-hf"), catalog.accelerator("nvidia-h100-sxm-80gb")
    >>> round(1000 * weight_read_s(llama, h100, 1, "fp16"), 2)
    3.94
    """
    n_lookup = 0 if model.tie_word_embeddings else model.vocab_size * model.hidden_size
    n_byte = (model.n_param_active - n_lookup) * BYTE_PER_WEIGHT[precision]
    return n_byte / (accelerator.bandwidth_byte_per_s * n_accelerator)
