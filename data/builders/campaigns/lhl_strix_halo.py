"""Of the settings of a model, build and workload one run stands for all."""

from collections.abc import Iterator
from typing import Any, Final

from builders.campaigns.llama_bench import precision_cells
from builders.published import Record
from roofcast.data.precision_names import parse_gguf_name

PRECISIONS: Final = {"gpt-oss-120b-F16": "fp4", "gpt-oss-20b-F16": "fp4"}
"""Precision that differs from the name's: the experts stay in MXFP4."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the records with their folder's name, and whether they stand for their workload."""
    runs = list(published)
    best: dict[tuple[object, ...], Record] = {}
    for run in runs:
        key = _workload(run)
        if key not in best or _rank(run) > _rank(best[key]):
            best[key] = run
    for run in runs:
        name, cells = run.cells["@path"].split("/")[-2], run.cells
        more: dict[str, Any] = {
            **precision_cells(PRECISIONS.get(name) or parse_gguf_name(name).precision),
            "name": name, "variant": cells["build"].removeprefix("llama.cpp-"),
            "is_best": best[_workload(run)] is run,
            "flash_attention": bool(cells["bench_raw"]["flash_attn"]),
            "hipblaslt_note": ", hipBLASLt" if cells["hipblaslt"] else "",
        }  # fmt: skip
        yield Record(f"{name}:{cells['@line']}", {**cells, **more})


def _workload(run: Record) -> tuple[object, ...]:
    return tuple(run.cells[name] for name in ("@path", "build", "mode", "value"))


def _rank(run: Record) -> tuple[int, bool, bool, bool, str]:
    cells, bench = run.cells, run.cells["bench_raw"]
    return bench["build_number"], bool(cells["fa"]), not cells["b"], bool(cells["hipblaslt"]), bench["test_time"]
