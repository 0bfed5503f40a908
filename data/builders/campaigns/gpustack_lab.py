"""GPUStack's performance lab: throughput and latency tuning of vLLM, SGLang, TensorRT-LLM and MindIE."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, rows_by_statistic
from builders.campaigns.gpustack_pages import PageRun, read_page
from roofcast.data.errors import SchemaError
from roofcast.data.units import s_from_ms

RAW: Final = Path("campaigns_2026_11") / "raw" / "gpustack_lab"

MODELS: Final = {
    "GPT-OSS-120B": "openai/gpt-oss-120b",
    "GPT-OSS-20B": "openai/gpt-oss-20b",
    "Qwen3-14B": "Qwen/Qwen3-14B",
    "Qwen3-32B": "Qwen/Qwen3-32B",
    "Qwen3-235B-A22B-Instruct-2507": "Qwen/Qwen3-235B-A22B-Instruct-2507",
    "zai-org/GLM-5.2-FP8": "zai-org/GLM-5.2",
}
ACCELERATORS: Final = {
    "A100 SXM 80GB": "nvidia-a100-sxm-80gb",
    "H100 SXM": "nvidia-h100-sxm-80gb",
    "H100 80GB HBM3": "nvidia-h100-sxm-80gb",
    "H200 SXM": "nvidia-h200-sxm-141gb",
    "H200": "nvidia-h200-sxm-141gb",
}
"""Names of NVIDIA's driver are those of SXM modules. A100 SXM alone has two memory sizes."""

PRECISIONS: Final = {"fp8": "fp8", "awq": "int4", "w8a8": "int8"}
"""Weight precision by suffix of a checkpoint's name."""

CHECKPOINTS: Final = {"gpt-oss": "fp4", "deepseek": "fp8"}
"""Precision of unquantised checkpoints that are not published in bf16, by a part of their name."""

ENGINES: Final = {
    "vllm serve": "vllm", "sglang.launch_server": "sglang", "trtllm-serve": "trtllm", "mindie serve": "mindie",
}  # fmt: skip
VERSIONS: Final = {"trtllm": "tensorrt-llm"}
MARKS: Final = {
    "vllm": ("tensor-parallel-size", "max-model-len", "performance-mode"),
    "sglang": ("tp-size", "context-length", "mem-fraction-static"),
}
"""Engine by options that no other engine has."""

ALIASES: Final = {
    "tp": "tp-size", "tensor-parallel-size": "tp-size", "pp": "pp-size", "pipeline-parallel-size": "pp-size",
    "dp": "dp-size", "data-parallel-size": "dp-size", "ep": "ep-size", "model-path": "model",
    "max-num-tokens": "chunk", "max-num-batched-tokens": "chunk", "chunked-prefill-size": "chunk",
    "max-num-seqs": "seqs", "max-running-requests": "seqs", "max-batch-size": "seqs",
    "max-model-len": "context", "context-length": "context", "max-seq-len": "context",
}  # fmt: skip
"""Names of one option in the engines' command lines."""

RANDOM_OUTPUT: Final = {"32k": 100, "4k": 200, "2k": 100, "128": 4}
"""Output tokens of the random data sets by input length, as the pages list them."""

LENGTH_TOLERANCE: Final = 0.01
PARTS_TOLERANCE: Final = 0.2
MIN_SUCCESS_RATIO: Final = 0.95

_STATISTICS: Final = {"mean": "Mean", "p50": "Median", "p95": "P95", "p99": "P99"}
_THROUGHPUTS: Final = {
    "output_throughput_token_per_s": "Output token throughput (tok/s)",
    "total_throughput_token_per_s": "Total Token throughput (tok/s)",
    "request_throughput_per_s": "Request throughput (req/s)",
}
_HARDWARE: Final = re.compile(
    r"(?:(\d+) \u00d7 |A single )?(?:NVIDIA )?(.+?)(?:x(\d))?(?: GPUs?| NPU)?(?: on a single node)?\.?"
)


def build_gpustack_lab(root: Path) -> BuildResult:
    """Build the campaign from the pages under `root`.

    Raises
    ------
    SchemaError
        If a page is missing or cannot be read.
    """
    builder = CampaignBuilder("gpustack_lab", MODELS, ACCELERATORS, stack="gpustack")
    files = sorted((root / RAW).glob("*.md"))
    if not files:
        raise SchemaError("", "has no pages", str(RAW))
    for file in files:
        for run in read_page(file):
            _add(builder, run)
        if "__references__" in file.name:
            _reject_tables(builder, file)
    return builder.build()


def options_of(command: str) -> dict[str, str]:
    """Return the options of a serving command under one name for all engines; the model is an option.

    Examples
    --------
    >>> options_of("vllm serve Qwen/Qwen3-8B -tp 2 --max-model-len=32768 --enable-expert-parallel")
    {'model': 'Qwen/Qwen3-8B', 'tp-size': '2', 'context': '32768', 'enable-expert-parallel': ''}
    """
    positional = re.search(r"(?:vllm serve|trtllm-serve|mindie serve) ([^\s-]\S*)", command)
    options = {"model": positional[1]} if positional else {}
    for name, value in re.findall(r"(?<!\S)--?([a-z][a-z0-9_-]*)(?:[= ]([^\s-]\S*))?", command):
        plain = name.replace("_", "-")
        options[ALIASES.get(plain, plain)] = value
    return options


def _add(builder: CampaignBuilder, run: PageRun) -> None:
    options = options_of(run.command)
    if run.comment.startswith("--"):
        override = options_of(run.comment)
        if "speculative-algorithm" in override:
            options = {name: value for name, value in options.items() if not name.startswith("speculative")}
        options |= override
    engine = _engine(run)
    accelerator = _machine(run.hardware)[0]
    split = _split(options)
    rejection = _rejection(run, engine, options, int(str(split["n_accelerator"])))
    if not builder.is_new(run.reference.partition(":")[0], *run.figures.values()):
        rejection = "exact_repeat", "the page prints the result again"
    if rejection is not None:
        builder.reject(run.reference, *rejection)
        return
    common: Row = {
        "model": _model(run, options), "accelerator": accelerator, "n_node": 1, "engine": engine,
        "engine_version": _version(run, engine), **_precisions(run, options), **split, **_lengths(run),
        **_load(run), **_settings(options), "note": _note(run),
    }  # fmt: skip
    outcomes = _outcomes(run, options)
    if common["load"] == "offline":
        outcomes = {"mean": {name: outcomes["mean"][name] for name in _THROUGHPUTS}}
    builder.add(run.reference, rows_by_statistic(common, outcomes))


def _rejection(run: PageRun, engine: str, options: dict[str, str], n: int) -> tuple[str, str] | None:
    n_done, n_sent = run.figures["Successful requests"], float(run.profile.get("total_requests", "nan"))
    if not run.command or engine in ("", "mindie"):
        return "settings_not_stated", run.heading
    if n_done < MIN_SUCCESS_RATIO * n_sent:
        return "unfinished_run", f"{n_done:g} of {n_sent:g} requests succeeded"
    model = _model(run, options)
    if "model" in options and _base(options["model"]) != _base(model):
        return "other_model", f"the page is about {model}, the command serves {options['model']}"
    n_machine = _machine(run.hardware)[1]
    return ("other_machine", f"{n} accelerators of {n_machine}") if n > n_machine else None


def _model(run: PageRun, options: dict[str, str]) -> str:
    """Return the page's model: of its setup, or that of the command if the file is named after it."""
    model = options.get("model", "")
    return model if f"__{_base(model)}__" in run.reference and _base(run.model) != _base(model) else run.model


def _machine(hardware: str) -> tuple[str, int]:
    """Return name and number of the accelerators of a machine.

    Examples
    --------
    >>> _machine("NVIDIA H200x8"), _machine("A single NVIDIA H100 SXM GPU.")
    (('H200', 8), ('H100 SXM', 1))
    """
    match = _HARDWARE.fullmatch(hardware)
    return (match[2], int(match[1] or match[3] or 1)) if match else (hardware, 1)


def _reject_tables(builder: CampaignBuilder, file: Path) -> None:
    """Reject the table rows with throughputs of a page that prints no result."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if line.startswith("|") and len(cells) >= 4 and any(re.match(r"[\d.]+", cell) for cell in cells[1:]):
            builder.reject(f"{file.name}:{number}", "no_lengths", " | ".join(cells))


def _engine(run: PageRun) -> str:
    stated = [engine for words, engine in ENGINES.items() if words in run.command]
    marked = [engine for engine, names in MARKS.items() for name in names if f"--{name}" in run.command]
    headed = [engine for engine in ("vllm", "sglang") if run.heading.lower().endswith(engine)]
    return (stated or marked or headed or [""])[0]


def _version(run: PageRun, engine: str) -> str:
    return next((v for name, v in run.versions.items() if name.startswith(VERSIONS.get(engine, engine))), "")


def _split(options: dict[str, str]) -> Row:
    tp, pp, dp = (int(options.get(f"{name}-size") or 1) for name in ("tp", "pp", "dp"))
    ep = int(options.get("ep-size") or 1)
    if "enable-dp-attention" in options:
        n = tp * pp
        tp = tp // dp
    else:
        n = tp * pp * dp
    if "enable-expert-parallel" in options or options.get("moe-a2a-backend") == "deepep":
        ep = n // pp
    split: Row = {"n_accelerator": n, "tp": tp, "pp": pp, "dp": dp}
    return split | ({"ep": ep} if ep > 1 else {})


def _base(name: str) -> str:
    """Return the name of a checkpoint without its owner and precision, in lower case."""
    return re.sub(rf"-({'|'.join(PRECISIONS)})$", "", name.rpartition("/")[2].lower())


def _precisions(run: PageRun, options: dict[str, str]) -> Row:
    """Return the precisions; sections on quantisation and optimised runs serve the recommended checkpoint."""
    is_recommended = run.variant == "Optimized" or "quantization" in run.heading.lower()
    name = options.get("model") or (options_of(run.recommended)["model"] if is_recommended else run.model)
    default = next((p for part, p in CHECKPOINTS.items() if part in name.lower()), "bf16")
    kv = options.get("kv-cache-dtype", "").partition("_")[0]
    return {"weight_precision": PRECISIONS.get(name.lower().rpartition("-")[2], default), "kv_precision": kv}


def _lengths(run: PageRun) -> Row:
    n = run.figures["Successful requests"]
    n_output = run.figures["Total generated tokens"] / n
    words = run.comment.lower().removeprefix("random ").partition(" ")[0]
    nominal = RANDOM_OUTPUT.get(words, float(run.profile.get("dataset_output_tokens", "nan")))
    is_fixed = abs(n_output - nominal) <= LENGTH_TOLERANCE * nominal
    return {
        "n_input_token": run.figures["Total input tokens"] / n, "n_output_token": n_output,
        "length_variation": 0.0 if is_fixed else math.nan,
    }  # fmt: skip


def _load(run: PageRun) -> Row:
    """Return load and counts. A rate that sends all requests within a second fills the concurrency limit."""
    limit = run.figures.get("Maximum request concurrency", math.nan)
    rate = float(run.profile.get("request_rate", "nan"))
    load: Row = {"load": "offline"} if math.isnan(limit) else {"load": "closed_loop", "concurrency": limit}
    if rate < float(run.profile.get("total_requests", "nan")):
        load = {"load": "open_loop", "request_rate": rate}
    n_request = run.figures["Successful requests"]
    return load | {"n_request": n_request, "duration_s": run.figures["Benchmark duration (s)"]}


def _settings(options: dict[str, str]) -> Row:
    row: Row = {
        column: float(options[name])
        for column, name in (
            ("chunk_size_token", "chunk"),
            ("max_num_seqs", "seqs"),
            ("max_context_token", "context"),
        )
        if options.get(name)
    }
    if "enable-prefix-caching" in options:
        row["prefix_caching"] = "on"
    if "enable-chunked-prefill" in options:
        row["chunked_prefill"] = "on"
    if "speculative-config" in options:
        config = json.loads(options["speculative-config"])
        row |= {"speculation": config["method"], "n_speculative_token": config["num_speculative_tokens"]}
    if "speculative-algorithm" in options:
        method = "eagle" if options["speculative-algorithm"] == "EAGLE3" else "mtp"
        steps = options.get("speculative-num-steps")
        row |= {"speculation": method, "n_speculative_token": float(steps) if steps else math.nan}
    return row


def _outcomes(run: PageRun, options: dict[str, str]) -> dict[str, Row]:
    outcomes: dict[str, Row] = {}
    is_guidellm = "Mean Latency(s)" in run.figures
    has_parts = not is_guidellm or ("reasoning-parser" not in options and _parts_agree(run))
    for ours, theirs in _STATISTICS.items():
        figures = {name.removeprefix(f"{theirs} "): v for name, v in run.figures.items() if name.startswith(theirs)}
        row: Row = {"e2e_s": figures["Latency(s)"]} if "Latency(s)" in figures else {}
        if has_parts and "TTFT (ms)" in figures:
            row["ttft_s"] = s_from_ms(figures["TTFT (ms)"])
            row["tpot_s"] = s_from_ms(figures["ITL (ms)" if is_guidellm else "TPOT (ms)"])
            if not is_guidellm:
                row["itl_s"] = s_from_ms(figures["ITL (ms)"])
        outcomes[ours] = row
    outcomes["mean"] |= {column: run.figures[label] for column, label in _THROUGHPUTS.items()}
    return outcomes


def _parts_agree(run: PageRun) -> bool:
    """Return whether TTFT and GuideLLM's ITL add up to the latency; tokens that arrive in bunches spoil both."""
    n_output = run.figures["Total generated tokens"] / run.figures["Successful requests"]
    ttft_s, itl_s = (s_from_ms(run.figures[f"Mean {name} (ms)"]) for name in ("TTFT", "ITL"))
    e2e_s = run.figures["Mean Latency(s)"]
    return abs(ttft_s + itl_s * (n_output - 1) - e2e_s) <= PARTS_TOLERANCE * e2e_s


def _note(run: PageRun) -> str:
    page = run.reference.partition(":")[0].removesuffix(".md").removeprefix("docs__performance-lab__")
    return f"{page}: {run.heading.rpartition(' > ')[2]}" + (f"; {run.comment}" if run.comment else "")
