"""Argonne's LLM-Inference-Bench: static batches of equal input and output length on nine accelerators."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of, round_figure, weight_read_s
from roofcast.data.catalog import load_catalog
from roofcast.data.errors import SchemaError, UnknownNameError
from roofcast.data.units import W_PER_MW

RAW: Final = Path("raw") / "argonne_llm_inference_bench"

FILES: Final = (
    "Fig_16_a_b_power_results.csv",
    "All_results.csv",
    "Fig_5_a_TP_PP_Results.csv",
    "Fig_3_A100_H100_quant_all_results.csv",
    "Fig_3_qaunt_results_quant_all_results.csv",
    "Fig_3_qaunt_results_kv_cache_Meta-Llama-3-8B-Instruct-FP8.csv",
    "Fig_3_qaunt_results_results_Meta-Llama-3-8B-Instruct-FP8.csv",
    "Fig_3_qaunt_results_throughput_results_Meta-Llama-3-8B-Instruct-FP8_(1).csv",
    "Fig_3_qaunt_results_GH200_results_Meta-Llama-3-8B-Instruct-FP8.csv",
    "Fig_2_a_All_results.csv",
    "Fig_2_b_All_results.csv",
    "Fig_4_b_All_results.csv",
    "Fig_10_All_results.csv",
    "Fig_18_SN40L_latency_throughput.csv",
    "Fig_21_all_results_TTFT.csv",
    "Fig_22_all_results_TTFT_ITL.csv",
    "Fig_1_b_Heatmap_input_vs_output.csv",
)
"""Reading order: the first copy of a run wins. The power file comes first because its rows have the most columns.
Excluded as byte-identical to one of these or a subset of one: Fig_5_b, Fig_29, Fig_16_a and Fig_16_b."""

ACCELERATORS: Final = {"Nvidia A100 GPU": "nvidia-a100-sxm-40gb", "SambaNova SN40L": ""}
"""The A100 accelerators are those of Polaris, with 40 GB."""

MODELS: Final = {"neuralmagic/Meta-Llama-3-8B-Instruct-FP8": "meta-llama/Meta-Llama-3-8B"}

ENGINES: Final = {
    "vLLM": ("vllm", "fp16"),
    "llama.cpp": ("llama.cpp", "fp16"),
    "TensorRT-LLM": ("trtllm", "fp16"),
    "Deepspeed-MII": ("deepspeed-mii", "fp16"),
    "Deepspeed": ("deepspeed", "bf16"),
    "sambaflow": ("sambaflow", ""),
}
"""Catalogue name of the engine, and the precision in the published scripts."""

PRECISIONS: Final = {"full_prec": "fp16", "int8_sq": "int8"}
PARALLELISM: Final[dict[str, Row]] = {
    "Tensor Parallelism": {}, "TP": {},
    "Pipeline Parallelism": {"tp": 1}, "PP": {"tp": 1},
    "Hybird Tensor (2) and Pipeline (2) Parallelism": {"tp": 2, "pp": 2},
    "Hybrid TP = 2 and PP = 2": {"tp": 2, "pp": 2},
    "EP": {"ep": 4, "moe_tp": 1}, "Hybrid TP = 2 and EP = 2": {"ep": 2, "moe_tp": 2},
}  # fmt: skip

CHUNK_TOKEN: Final = 64.0
"""Prompt tokens per pass. llama.cpp's batch size is this number, at most 64 in this campaign; its default is 2048."""

_DEFAULT_BLOCK: Final = "16"


def build_argonne(root: Path) -> BuildResult:
    """Build the campaign from its tables under `root`.

    Raises
    ------
    SchemaError
        If a file is missing or has another header.
    """
    builder = CampaignBuilder("argonne", MODELS, ACCELERATORS)
    for name in FILES:
        for reference, cells in _records(root / RAW / name):
            _add(builder, name, reference, _normalize(name, cells))
    return builder.build()


def _records(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the lines; repair rows split by a comma in the precisions and rows without the end latency."""
    if not file.is_file():
        raise SchemaError("", "no such file", file.name)
    with file.open(encoding="utf-8", newline="") as stream:
        reader = csv.reader(stream)
        header = [name.strip() for name in next(reader)]
        for cells in filter(any, reader):
            if len(cells) == len(header) + 1 and "kv_cache_dtype" in header:
                i = header.index("kv_cache_dtype")
                cells[i : i + 2] = [",".join(cells[i : i + 2])]
            if len(cells) + 1 == len(header) and header[-1] == "end_latency":
                cells.append("")
            yield f"{file.name}:{reader.line_num}", dict(zip(header, cells, strict=True))


def _add(builder: CampaignBuilder, file: str, reference: str, cells: dict[str, str]) -> None:
    latency_s = number_of(cells["latency"])
    run = (*(cells[name] for name in ("hardware", "n", "input", "output", "batch")), round_figure(latency_s))
    rejection = _rejection(cells)
    if rejection is None and not builder.is_new(MODELS.get(cells["model"], cells["model"]), *run):
        rejection = ("repeats_other_file", "the same run, kept from an earlier file")
    row = _row(file, cells, latency_s)
    rejection = rejection or _implausible(row)
    if rejection is not None:
        builder.reject(reference, *rejection)
    else:
        builder.add(reference, [row])


def _implausible(row: Row) -> tuple[str, str] | None:
    """Return rule and detail if the run cannot have generated all its tokens; None if it can or a name is unknown."""
    catalog = load_catalog()
    name, hardware = str(row["model"]), str(row["accelerator"])
    try:
        model = catalog.model(MODELS.get(name, name))
        accelerator = catalog.accelerator(ACCELERATORS.get(hardware, hardware))
    except UnknownNameError:
        return None
    numbers = (row["n_input_token"], row["n_output_token"], row["e2e_s"], row["n_accelerator"])
    n_input, n_output, latency_s, n_accelerator = (float(str(number)) for number in numbers)
    if model.max_context_token and n_input + n_output > model.max_context_token:
        return "beyond_context", f"{n_input + n_output:g} tokens, the model holds {model.max_context_token}"
    least_s = n_output * weight_read_s(model, accelerator, int(n_accelerator), str(row["weight_precision"]))
    if latency_s < least_s and "speculation" not in row:
        return "faster_than_weights", f"{latency_s:.3g} s; reading the weights for each token takes {least_s:.3g} s"
    return None


def _normalize(file: str, cells: dict[str, str]) -> dict[str, str]:
    """Return the cells under the same column names for all files."""
    result = {re.sub(r"[\s_]+", " ", name).strip().lower(): text.strip() for name, text in cells.items()}
    both = result.get("input output length", "")
    result["input"] = result.get("input length") or result.get("max input length") or both
    result["output"] = result.get("output length") or result.get("max output len") or both
    result["batch"] = result.get("batch size", "")
    result["hardware"] = result.get("hardware") or ("Nvidia GH200 GPU" if "GH200" in file else "")
    result["n"] = result.get("num of hardware") or result.get("tensor parallel") or result.get("tp size", "1")
    result["model"] = result.get("model") or result.get("model name", "")
    result["latency"] = result.get("latency") or result.get("ttft latency", "")
    result["framework"] = result.get("framework") or ("vLLM" if "GH200" in file else "TensorRT-LLM")
    return result


def _rejection(cells: dict[str, str]) -> tuple[str, str] | None:
    """Return the rule that rejects a row and its detail; None to accept it. Outcomes are not used."""
    if not cells["hardware"]:
        return "accelerator_not_stated", "neither file nor row names the accelerator"
    if cells["framework"] == "llama.cpp" and number_of(cells["batch"]) != CHUNK_TOKEN:
        return "prompt_chunk", f"prompt processed {cells['batch']} tokens at a time"
    if cells.get("kv cache") == "Without KV Cache":
        return "no_kv_cache", "every token computes all before it again"
    if cells.get("kv cache block size", _DEFAULT_BLOCK) != _DEFAULT_BLOCK:
        return "kv_block_size", f"cache blocks of {cells['kv cache block size']} tokens"
    if "ttft latency" in cells:
        return "repeats_other_file", "time to first token of Fig_21, latency of All_results"
    return None


def _row(file: str, cells: dict[str, str], latency_s: float) -> Row:
    n_accelerator = int(cells["n"])
    is_llama_cpp = cells["framework"] == "llama.cpp"
    batch = 1.0 if is_llama_cpp else number_of(cells["batch"])
    n_input, n_output = number_of(cells["input"]), number_of(cells["output"])
    engine, precision = ENGINES[cells["framework"]]
    weights, cache = _precisions(cells, precision)
    row: Row = {
        "model": cells["model"], "accelerator": cells["hardware"], "n_accelerator": n_accelerator,
        "engine": engine, "weight_precision": weights, "kv_precision": cache, "load": "static_batch",
        "length_variation": 0.0,
        "n_input_token": n_input, "n_output_token": n_output, "concurrency": batch, "statistic": "mean",
        "e2e_s": latency_s,
        "output_throughput_token_per_s": batch * n_output / latency_s,
        "total_throughput_token_per_s": batch * (n_input + n_output) / latency_s,
        "derived": "output_throughput_token_per_s total_throughput_token_per_s",
        **_split(cells, n_accelerator, is_llama_cpp),
        "date": "2024", "note": file,
    }  # fmt: skip
    if n_output == 1:
        row |= {"ttft_s": latency_s}
    if file.startswith("Fig_16"):
        row |= {"power_w": number_of(cells["avg power"]) * W_PER_MW}
    if cells.get("speculative decoding", "").startswith("With "):
        row |= {"speculation": "draft", "n_speculative_token": number_of(cells["num speculative tokens"])}
    if is_llama_cpp:
        row["note"] = f"{file}; prompt processed {CHUNK_TOKEN:.0f} tokens at a time"
    return row


def _precisions(cells: dict[str, str], default: str) -> tuple[str, str]:
    """Return the precisions of weights and KV cache."""
    dtypes = cells.get("kv cache dtype", "")
    if dtypes:
        weights = re.search(r"Weight = (\w+)", dtypes)
        cache = re.search(r"KV Cache = (\w+)", dtypes)
        names = [match[1] if match else "" for match in (weights, cache)]
        return PRECISIONS.get(names[0], names[0]), PRECISIONS.get(names[1], names[1])
    if cells["model"] in MODELS:
        return "fp8", ""
    return default, default


def _split(cells: dict[str, str], n_accelerator: int, is_llama_cpp: bool) -> Row:
    """Return the parallelism: pipeline for llama.cpp, tensor for the others unless stated.

    An MI250 is two devices to the engine and the tables do not state which they count: its parallelism is blank.
    """
    if "MI250" in cells["hardware"]:
        return {}
    if is_llama_cpp:
        return {"tp": 1, "pp": n_accelerator}
    split: Row = {"tp": n_accelerator, "pp": 1} | PARALLELISM.get(cells.get("parallelism type", "TP"), {})
    if cells.get("parallelism type") in ("Pipeline Parallelism", "PP"):
        split["pp"] = n_accelerator
    return split
