"""Runs in PegaInfer's snapshots, and the two engines in each row of its pages."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from builders.figures import number_of
from builders.published import Cells, Record
from roofcast.data.catalog import load_catalog
from roofcast.data.units import s_from_ms

GPUS: Final = {
    "NVIDIA A100-SXM4-80GB": "nvidia-a100-sxm-80gb",
    "NVIDIA H200": "nvidia-h200-sxm-141gb",
    "NVIDIA GeForce RTX 4090": "nvidia-rtx-4090-24gb",
    "NVIDIA GeForce RTX 5070 Ti": "nvidia-rtx-5070-ti-16gb",
    "NVIDIA GeForce RTX 5090": "nvidia-rtx-5090-32gb",
}
JULY_TABLES: Final = ("Fixed / Concurrency", "QPS Sweep", "Overload And Recovery")


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each run."""
    for record in published:
        if record.cells["@file"].endswith(".json"):
            yield from _snapshot(record.cells["@file"].partition("__")[2], record)
        elif record.cells["@file"].endswith("2026-07.md"):
            yield from _july(record)
        else:
            yield from _june(record)


def _snapshot(name: str, record: Record) -> Iterator[Record]:
    run = Record(name, {**record.cells, "kind": "snapshot", "folder": name.partition("__")[0]})
    run = run.having(accelerator=GPUS.get(record.cells.get("gpu", ""), ""))
    if "model" not in run.cells:
        yield run.rejected("comparison", "medians of pairs of builds, without latencies")
        return
    for part in ("prefill_heavy", "decode_heavy"):
        load, metrics = run.cells[part], run.cells[part]["metrics"]
        cells = {**run.cells, "metrics": metrics, "n_input": load["prompt_len"], "n_output": load["output_len"]}
        gaps = metrics["steady_tpot_ms"] or {}
        is_cached = _is_cached(cells, metrics["ttft_ms"]["p50_ms"])
        latencies = {"caching": "on"} if is_cached else {"ttft": metrics["ttft_ms"], "e2e": metrics["e2e_ms"]}
        of_part = Record(f"{name} {part}", cells | {"concurrency": 1, "gaps": gaps, "itl": gaps, **latencies})
        if is_cached and not gaps:
            yield of_part.rejected("cached_prompt", "the first token comes sooner than the prompt is computed")
        else:
            yield of_part
    if "mixed_itl" in run.cells:
        mixed: Mapping[str, Any] = run.cells["mixed_itl"]
        yield Record(f"{name} mixed_itl", run.cells).rejected("mixed_load", "requests of two kinds at once")
        config = {f"n_{name}": mixed["config"][f"bg_{name}_len"] for name in ("prompt", "output")}
        background = run.having(
            kind="background", n_input=config["n_prompt"], n_output=config["n_output"],
            concurrency=mixed["config"]["bg_concurrency"], itl=mixed["baseline_itl"] or {},
        )  # fmt: skip
        alone = Record(f"{name} mixed_itl baseline", background.cells)
        yield alone.rejected("uneven_load", "a stream ended before the run") if mixed.get("warnings") else alone


def _is_cached(cells: Cells, ttft_ms: float) -> bool:
    catalog = load_catalog()
    names = {"Kimi-K2.6": "moonshotai/Kimi-K2.6"}
    model = catalog.model(names.get(cells["model"], f"Qwen/{cells['model']}"))
    n_accelerator = 8 if cells.get("parallel") else 1
    n_flop = 2.0 * model.n_param_active * float(cells["n_input"])
    return n_flop / (catalog.accelerator(cells["accelerator"]).peak_flop_per_s["bf16"] * n_accelerator) > s_from_ms(
        ttft_ms
    )


def _june(record: Record) -> Iterator[Record]:
    cells, heading = record.cells, record.cells["@heading"]
    if heading in {"HTTP Fixed Shapes", "PegaInfer Direct A/B"}:
        yield record.rejected("metric_by_row", f"one metric a row: {cells['Metric']}")
    if heading != "HTTP Concurrency Sweep":
        return
    for name, version, n_input in (("pegainfer", "a1846ca", 63459 / 64), ("vLLM", "0.23.0", 1024.0)):
        figures = {
            "ttft": cells[f"{name} TTFT mean"], "tpot": cells[f"{name} TPOT mean"],
            "speed": cells[f"{name} output tok/s"],
        }  # fmt: skip
        plain = {key: text.replace("*", "").removesuffix("ms") for key, text in figures.items()}
        more = {"kind": "june", "engine": name.lower(), "version": version, "n_input": n_input, "n_output": 256}
        yield Record(f"{record.reference} {name}", {**cells, **plain, **more})


def _july(record: Record) -> Iterator[Record]:
    cells, heading = record.cells, record.cells["@heading"]
    if heading not in JULY_TABLES or "TPOT ms OI/vLLM" not in cells:
        if heading in {"Direct Diagnostic", "Overload And Recovery"}:
            yield record.rejected("diagnostic", "no measurement of serving")
        return
    pairs = {
        name.removesuffix(" OI/vLLM"): text.split("/") for name, text in cells.items() if name.endswith("OI/vLLM")
    }
    for position, (engine, version) in enumerate((("pegainfer", "e2de05d"), ("vllm", "0.25.1"))):
        figures = {name: texts[position] for name, texts in pairs.items()}
        n_output = 128.0 if heading == "QPS Sweep" else number_of(cells["Cell"].split()[0].split("/")[1])
        more = {"kind": "july", "engine": engine, "version": version, "n_output": n_output}
        more |= {"load": "open_loop" if "QPS" in cells else "closed_loop", "n_input": figures.get("avg in", "")}
        run = Record(f"{record.reference} {engine}", {**cells, **figures, **more})
        yield run if more["n_input"] else run.rejected("no_lengths", "the page has no input length")
