"""llama.cpp's ``llama-bench``: JSON, JSON lines, CSV, or the table in Markdown; one test a row.

A test processes a prompt (``pp``), generates tokens after one (``tg``), or both (``pg``); a depth is context that the
cache holds before. There is one sequence, and no time for tokenisation and sampling. The file of the weights names
model and quantisation; the table in Markdown has only the architecture, which names no model.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from roofcast.data.csv_rows import check_width
from roofcast.data.importers.client_runs import Run, join_cells
from roofcast.data.importers.fact_tables import fact_table
from roofcast.data.importers.format import Format
from roofcast.data.importers.job_logs.run_log import iter_lines
from roofcast.data.importers.json_input import (
    Node,
    cell_node,
    check_keys,
    csv_rows,
    iter_documents,
    read_json,
    read_text,
)
from roofcast.data.importers.sources import Source, header_of
from roofcast.data.precision_names import parse_gguf_name, parse_weights
from roofcast.data.units import S_PER_NS

_WORDS: Final = fact_table("tool_words")["llama_bench"]
CPU_BACKENDS: Final = frozenset({"CPU", "BLAS", "ACCELERATE", "RPC"})
_TEST: Final = re.compile(r"(?:pp ?(\d{1,9}))?\+?(?:tg ?(\d{1,9}))?(?: @ d ?(\d{1,9}))?", re.ASCII)
_DEVICE: Final = re.compile(r"Device ([0-9]{1,3}): ([^,|]{1,80}),", re.ASCII)
_BUILD: Final = re.compile(r"build: [0-9a-f]{6,40} \(([0-9]{1,9})\)", re.ASCII)
_MARKDOWN: Final = re.compile(rb"\|\s{0,40}model\s{0,40}\|[^\n]{0,400}\|\s{0,20}test\s{0,20}\|\s{0,20}t/s\s{0,20}\|")
_FLAGS: Final = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}


def _is_table(start: bytes) -> bool:
    return {"model_filename", "n_gen", "avg_ts"} <= set(header_of(start)) or _MARKDOWN.search(start) is not None


def _runs(source: Source) -> Iterator[Run]:
    yield from map(_run, _tests(source))


def _tests(source: Source) -> Iterator[Node]:
    start = source.start()
    content = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if content.startswith(b"["):
        yield from read_json(source).items()
    elif content.startswith(b"{"):
        yield from iter_documents(source)
    elif "model_filename" in header_of(start):
        yield from _csv_tests(source)
    else:
        yield from _markdown_tests(source)


def _csv_tests(source: Source) -> Iterator[Node]:
    rows = csv_rows(source)
    _, header = next(rows)
    for line, row in rows:
        check_width(row, header, source.name, line)
        yield Node({name: _cell(text) for name, text in zip(header, row, strict=True)}, "", source.name, line)


def _markdown_tests(source: Source) -> Iterator[Node]:
    header: list[str] = []
    devices: list[str] = []
    tests, build = [], None
    for line, content in iter_lines(read_text(source), source.name):
        cells = [cell.strip() for cell in content.strip().strip("|").split("|")] if content.startswith("|") else []
        if {"model", "test", "t/s"} <= set(cells):
            header = cells
        elif header and cells and cells[0].strip("-: "):
            check_width(cells, header, source.name, line)
            tests.append((line, dict(zip(header, cells, strict=True)), ", ".join(devices)))
        build = _BUILD.search(content) or build
        for number, name in _DEVICE.findall(content):
            devices = [*(devices if int(number) else []), name]  # each run lists its devices from 0 on
    for line, cells_of, names in tests:
        node = Node(cells_of["test"], "test", source.name, line)
        match = _TEST.fullmatch(cells_of["test"])
        if not (match and any(match.groups()[:2])):
            raise node.error(f"must be a test such as pp512, tg128 or pp512+tg128 @ d1024, got {node.value[:60]!r}")
        fields = {_WORDS["fields"].get(name, name): _cell(text) for name, text in cells_of.items()}
        fields |= {
            name: float(text or 0)
            for name, text in zip(("n_prompt", "n_gen", "n_depth"), match.groups(), strict=True)
        }
        fields["avg_ts"] = _cell(cells_of["t/s"].partition("±")[0].strip())
        fields |= {"gpu_info": names, "build_number": float(build[1]) if build else None}
        yield Node(fields, "", source.name, line)


def _cell(text: str) -> object:
    return cell_node(text, "", "", 0).value


def _run(test: Node) -> Run:
    check_keys(test, ("n_prompt", "n_gen", "avg_ts"), "llama-bench")
    n_prompt, n_gen, depth = (test[name].number() for name in ("n_prompt", "n_gen", "n_depth"))
    depth = 0.0 if math.isnan(depth) else depth
    speed = test["avg_ts"].number()
    if not (n_prompt + n_gen > 0 and speed > 0):
        raise test["avg_ts"].error("must be tokens per second above 0 of a prompt, of a generation or of both")
    time_s = S_PER_NS * test["avg_ns"].number()
    time_s = time_s if time_s > 0 else (n_prompt + n_gen) / speed
    lengths = {"n_input_token": (n_prompt + depth) or 1.0, "n_output_token": n_gen or 1.0}
    if n_prompt and n_gen:
        outcomes = {"e2e_s": time_s, "total_throughput_token_per_s": speed}
    elif n_prompt:
        outcomes = {"ttft_s": time_s}
    else:
        outcomes = {"tpot_s": time_s / n_gen, "output_throughput_token_per_s": speed}
    cached = {"prefix_cache_ratio": depth / (n_prompt + depth)} if n_prompt and depth else {}
    cells = join_cells(_setup(test), lengths, cached)
    return Run(test.place, test.line, cells, {"mean": outcomes})


def _setup(test: Node) -> dict[str, Any]:
    name, kind = _text(test["model_filename"]), _text(test["model_type"])
    file, described = parse_gguf_name(name), parse_gguf_name(kind)
    quantisation = file.quantisation or described.quantisation
    number, n_layer = test["build_number"].number(), _text(test["n_gpu_layers"])
    model = file.model if name else ""
    weights = parse_weights(quantisation)
    notes = [_text(test["backends"]), quantisation or kind, "" if model else f"model {name or kind}"[:200]]
    caches = [_text(test[f"type_{part}"]).lower() for part in "kv"]
    is_one_type = len({*caches}) == 1 and caches[0] in _WORDS["caches"]
    notes += [] if is_one_type or not any(caches) else [f"cache of keys {caches[0]}, of values {caches[1]}"]
    return {
        "model": model,
        **_devices(test, n_layer),
        "engine": "llama.cpp",
        "engine_version": f"b{number:g}" if number > 0 else "",
        "weight_precision": weights.precision,
        "weight_bit": weights.bit,
        "kv_precision": _WORDS["caches"][caches[0]] if is_one_type else "",
        "flash_attention": _FLAGS.get(_text(test["flash_attn"]).lower(), ""),
        "chunk_size_token": test["n_ubatch"].number(),
        "n_gpu_layer": math.nan if n_layer == "-1" else test["n_gpu_layers"].number(),
        "n_cpu_moe": test["n_cpu_moe"].number(),
        "date": _text(test["test_time"])[:10],
        "load": "static_batch",
        "concurrency": 1.0,
        "software": "llama-bench",
        "note": ", ".join(filter(None, notes)),
    }


def _devices(test: Node, n_layer: str) -> Mapping[str, Any]:
    backends = {name.strip().upper() for name in _text(test["backends"]).split(",")}
    field = "cpu_info" if "METAL" in backends and not _text(test["gpu_info"]) else "gpu_info"  # early Metal builds
    names = [name.strip() for name in _text(test[field]).split(",") if name.strip()]
    if n_layer == "0" or backends <= CPU_BACKENDS or len({*names}) != 1:
        return {}  # no accelerator, several kinds of them, or none is named
    mode = _text(test["split_mode"]).lower() or "layer"
    n = 1 if mode == "none" else len(names)
    return {"accelerator": names[0], "n_accelerator": n, "tp": n if mode in ("row", "tensor") else 1} | (
        {"pp": n} if mode == "layer" else {}
    )


def _text(node: Node) -> str:
    value = node.value
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    return node.text() if isinstance(value, str) or value is None else str(value)


FORMAT: Final = Format("llama_bench", _runs, _is_table)
"""The entry of the registry."""
