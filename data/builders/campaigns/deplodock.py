"""Figures, containers and command of deplodock's text files, one published row a file."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from builders.figures import number_of
from builders.published import Cells, Record
from roofcast.data.errors import SchemaError

YEARS: Final = {
    "rtx4900_rtx5900_pro6000_08_10_2025": "2025",
    "pro6000_l40s_h100_h200_11_2025": "2025-11",
    "pro6000_h100_h200_b200_01_2026": "2026-01",
}
"""Date by folder of the older results."""

SIZES: Final = {
    "tp": ("tensor-parallel-size", "tp"),
    "pp": ("pipeline-parallel-size", "pp-size"),
    "dp": ("data-parallel-size", "dp"),
}
OPTIONS: Final = (
    "kv-cache-dtype", "gpu-memory-utilization", "mem-fraction-static", "max-num-seqs", "max-running-requests",
    "max-model-len", "context-length",
)  # fmt: skip
PARTS: Final = ("Serving Benchmark Result", "Docker Compose Configuration", "Benchmark Command")

_SECTION: Final = re.compile(r"^=+ ([A-Z][\w ]+?) =+$", re.MULTILINE)
_SERVICE: Final = re.compile(r"^  (?:vllm|sglang)_\d+:$", re.MULTILINE)
_LABEL: Final = re.compile(r"^([A-Z][\w /().]+?):\s+([\d.]+|nan)\s*$", re.MULTILINE)


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the records with the figures, and the settings of the only engine.

    Raises `SchemaError` if a file lacks the result, the containers or the command.
    """
    for record in published:
        parts = _SECTION.split(record.cells["@text"])
        sections = dict(zip(parts[1::2], parts[2::2], strict=True))
        for name in PARTS:
            if name not in sections:
                raise SchemaError("", f"must have the section {name}", record.reference)
        result, compose, command = (sections[name] for name in PARTS)
        services = _SERVICE.split(compose)[1:]
        cells: dict[str, Any] = {**dict(_LABEL.findall(result)), "n_service": len(services)}
        cells |= {name: _option(command, name) for name in ("num-prompts", "model", "random-output-len")}
        cells |= {"gpu": _gpu(record.cells["@file"], sections), "date": _date(record.cells["@path"])}
        if len(services) == 1 and number_of(cells["Successful requests"]) > 0:
            cells |= _counts(cells) | _deployment(services[0].partition("healthcheck:")[0])
        yield record.having(**cells)


def _counts(cells: Cells) -> dict[str, Any]:
    n_done = number_of(cells["Successful requests"])
    n_output = number_of(cells["Total generated tokens"]) / n_done
    is_fixed = n_output == number_of(cells["random-output-len"])
    n_failed = number_of(cells["num-prompts"]) - n_done
    return {"n_output": n_output, "length_variation": 0.0 if is_fixed else "", "n_failed": n_failed}


def _deployment(service: str) -> dict[str, Any]:
    image = re.search(r"image: (\S+)", service)
    sizes = {name: next((n for o in options if (n := _option(service, o))), "1") for name, options in SIZES.items()}
    tp, pp, dp = (number_of(n) for n in sizes.values())
    return {
        **sizes, "n_accelerator": tp * pp * dp, "ep": tp * dp if "--enable-expert-parallel" in service else "",
        "service": service, "image": image[1] if image else "",
        "engine": "sglang" if image and "sglang" in image[1] else "vllm",
        **{name: _option(service, name) for name in OPTIONS},
    }  # fmt: skip


def _option(text: str, name: str) -> str:
    values = re.findall(rf"--{name}[ =]([\w./:-]+)", text)
    return values[-1] if values else ""


def _gpu(file: str, sections: Mapping[str, str]) -> str:
    match = re.search(r"^gpu_name: (.+)$", sections.get("Benchmark Task", ""), re.MULTILINE)
    return match[1].strip() if match else file.partition("_")[0]


def _date(path: str) -> str:
    folder = path.rpartition("/")[0]
    match = re.search(r"(20\d\d-\d\d-\d\d)_", folder)
    return match[1] if match else next((date for name, date in YEARS.items() if name in folder.split("/")), "")
