"""Settings of GPUStack's serving commands, and what its printed results state."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from builders.campaigns.gpustack_pages import PageRun, read_page
from builders.published import Record
from roofcast.data.units import s_from_ms

QUANTISATIONS: Final = "fp8|awq|w8a8"
"""Suffixes of a checkpoint's name."""

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
    "gpu-memory-utilization": "memory", "mem-fraction-static": "memory",
}  # fmt: skip
"""Names of one option in the engines' command lines."""

RANDOM_OUTPUT: Final = {"32k": 100, "4k": 200, "2k": 100, "128": 4}
"""Output tokens of the random data sets by input length, as the pages list them."""

LENGTH_TOLERANCE: Final = 0.01
PARTS_TOLERANCE: Final = 0.2
MIN_SUCCESS_RATIO: Final = 0.95

_HARDWARE: Final = re.compile(
    r"(?:(\d+) \u00d7 |A single )?(?:NVIDIA )?(.+?)(?:x(\d))?(?: GPUs?| NPU)?(?: on a single node)?\.?"
)


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the printed results, and rejected table rows with throughputs of pages that print none."""
    for page in published:
        name, text = page.cells["@file"], page.cells["@text"]
        for run in read_page(name, text):
            yield Record(run.reference, {"@file": name, **_described(run)})
        if "__references__" in name:
            for number, line in enumerate(text.splitlines(), start=1):
                cells = [cell.strip() for cell in line.strip("| ").split("|")]
                if line.startswith("|") and len(cells) >= 4 and any(re.match(r"[\d.]+", cell) for cell in cells[1:]):
                    yield Record(f"{name}:{number}", {}).rejected("no_lengths", " | ".join(cells))


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


def _described(run: PageRun) -> dict[str, Any]:
    options = options_of(run.command)
    if run.comment.startswith("--"):
        override = options_of(run.comment)
        if "speculative-algorithm" in override:
            options = {name: value for name, value in options.items() if not name.startswith("speculative")}
        options |= override
    engine, model, split = _engine(run), _model(run, options), _split(options)
    accelerator, n_machine = machine_of(run.hardware)
    n_done, n_sent = run.figures["Successful requests"], float(run.profile.get("total_requests", "nan"))
    return {
        **run.figures, "options": options, "printed": tuple(run.figures.values()), "heading": run.heading,
        "engine": engine if run.command else "", "model": model, "accelerator": accelerator, "n_machine": n_machine,
        "n_sent": n_sent, "is_finished": not n_done < MIN_SUCCESS_RATIO * n_sent, **split,
        "is_other_model": "model" in options and _base(options["model"]) != _base(model),
        "is_other_machine": split["n_accelerator"] > n_machine, "version": _version(run, engine),
        "checkpoint": _checkpoint(run, options), **_lengths(run), **_load(run), **_settings(options),
        "client": _client(run, options), "note": _note(run),
    }  # fmt: skip


def _model(run: PageRun, options: dict[str, str]) -> str:
    model = options.get("model", "")
    return model if f"__{_base(model)}__" in run.reference and _base(run.model) != _base(model) else run.model


def machine_of(hardware: str) -> tuple[str, int]:
    """Return name and number of the accelerators of a machine.

    Examples
    --------
    >>> machine_of("NVIDIA H200x8"), machine_of("A single NVIDIA H100 SXM GPU.")
    (('H200', 8), ('H100 SXM', 1))
    """
    match = _HARDWARE.fullmatch(hardware)
    return (match[2], int(match[1] or match[3] or 1)) if match else (hardware, 1)


def _engine(run: PageRun) -> str:
    stated = [engine for words, engine in ENGINES.items() if words in run.command]
    marked = [engine for engine, names in MARKS.items() for name in names if f"--{name}" in run.command]
    headed = [engine for engine in ("vllm", "sglang") if run.heading.lower().endswith(engine)]
    return (stated or marked or headed or [""])[0]


def _version(run: PageRun, engine: str) -> str:
    return next((v for name, v in run.versions.items() if name.startswith(VERSIONS.get(engine, engine))), "")


def _split(options: dict[str, str]) -> dict[str, int]:
    tp, pp, dp = (int(options.get(f"{name}-size") or 1) for name in ("tp", "pp", "dp"))
    ep = int(options.get("ep-size") or 1)
    if "enable-dp-attention" in options:
        n = tp * pp
        tp = tp // dp
    else:
        n = tp * pp * dp
    if "enable-expert-parallel" in options or options.get("moe-a2a-backend") == "deepep":
        ep = n // pp
    split = {"n_accelerator": n, "tp": tp, "pp": pp, "dp": dp}
    return split | ({"ep": ep} if ep > 1 else {})


def _base(name: str) -> str:
    return re.sub(rf"-({QUANTISATIONS})$", "", name.rpartition("/")[2].lower())


def _checkpoint(run: PageRun, options: Mapping[str, str]) -> str:
    is_recommended = run.variant == "Optimized" or "quantization" in run.heading.lower()
    return options.get("model") or (options_of(run.recommended)["model"] if is_recommended else run.model)


def _lengths(run: PageRun) -> dict[str, float]:
    n_output = run.figures["Total generated tokens"] / run.figures["Successful requests"]
    words = run.comment.lower().removeprefix("random ").partition(" ")[0]
    nominal = RANDOM_OUTPUT.get(words, float(run.profile.get("dataset_output_tokens", "nan")))
    is_fixed = abs(n_output - nominal) <= LENGTH_TOLERANCE * nominal
    return {"n_output": n_output, "length_variation": 0.0 if is_fixed else math.nan}


def _load(run: PageRun) -> dict[str, Any]:
    limit = run.figures.get("Maximum request concurrency", math.nan)
    rate = float(run.profile.get("request_rate", "nan"))
    if rate < float(run.profile.get("total_requests", "nan")):
        return {"load": "open_loop", "rate": rate}
    return {"load": "offline"} if math.isnan(limit) else {"load": "closed_loop", "limit": limit}


def _settings(options: Mapping[str, str]) -> dict[str, Any]:
    switches = {f"has_{name.replace('-', '_')}": "on" for name in ("prefix-caching", "chunked-prefill")
                if f"enable-{name}" in options}  # fmt: skip
    if "speculative-algorithm" in options:
        method = "eagle" if options["speculative-algorithm"] == "EAGLE3" else "mtp"
        return switches | {"speculation": method, "n_draft": options.get("speculative-num-steps", "")}
    if "speculative-config" in options:
        config = json.loads(options["speculative-config"])
        return switches | {"speculation": config["method"], "n_draft": config["num_speculative_tokens"]}
    return switches


def _client(run: PageRun, options: Mapping[str, str]) -> str:
    if "Mean Latency(s)" not in run.figures:
        return "vllm"
    return "guidellm" if "reasoning-parser" not in options and _parts_agree(run) else ""


def _parts_agree(run: PageRun) -> bool:
    n_output = run.figures["Total generated tokens"] / run.figures["Successful requests"]
    ttft_s, itl_s = (s_from_ms(run.figures[f"Mean {name} (ms)"]) for name in ("TTFT", "ITL"))
    e2e_s = run.figures["Mean Latency(s)"]
    return abs(ttft_s + itl_s * (n_output - 1) - e2e_s) <= PARTS_TOLERANCE * e2e_s


def _note(run: PageRun) -> str:
    page = run.reference.partition(":")[0].removesuffix(".md").removeprefix("docs__performance-lab__")
    return f"{page}: {run.heading.rpartition(' > ')[2]}" + (f"; {run.comment}" if run.comment else "")
