"""AWS Neuron: pretraining on Trainium1, from all revisions of the documentation's benchmark tables."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import number
from builders.job_campaigns.source_rows import Cells, RejectedRow, SourceRow, build

N_CORE_PER_CHIP: Final = 2
"""NeuronCores per Inferentia2 or Trainium chip; the source counts parallelism in cores."""

FILES: Final = (
    "raw/aws_neuron/union_trn1_nlp_data.csv",
    "raw/aws_neuron/union_trn1_trn1_trn1n_nlp_data.csv",
    "raw/aws_neuron/union_trn1_training_data_decoder.csv",
    "raw/aws_neuron/union_trn1_training_data_encoder.csv",
    "raw/aws_neuron/union_trn1_training_data_vision_transformers.csv",
)

PHASES: Final = {"Ph1": 128.0, "Ph2": 512.0}
"""Sequence length by phase of BERT pretraining; the tables print that of the first phase for both."""

LENGTHS: Final = {"GPT3": 2048.0, "Llama2": 4096.0}
"""Sequence length by word of the model name; the tables state it from January 2024 on."""

_CHIPS_PER_NODE: Final = 16
_SIZE: Final = re.compile(r"\b(TP|PP|DP)=(\d+)|(\d+)(?:xNC|Nodes)?\((TP|DP)\)")
_PURPOSE: Final = re.compile(r" (pre-training|fine-?tuning)$", re.IGNORECASE)
_VISION: Final = re.compile(r"ViT|CLIP|Per[cv]e[ir]ver", re.IGNORECASE)


def build_neuron(root: Path) -> BuildResult:
    """Build the campaign from the files under `root`.

    If a figure later has another batch or topology, all else equal, its setting was corrected: the last one counts.
    """
    rows = {f"{Path(file).name}:{line}": row for file in FILES for line, row in _lines(root / file)}
    by_day = sorted(rows.values(), key=lambda row: row["_first_seen"])
    last_settings = {_figure(row): _setting(row) for row in by_day}
    first_seen = {_figure(row): row["_first_seen"] for row in reversed(by_day)}
    source_rows = (
        _classify(
            reference, row | {"_measured": first_seen[_figure(row)]}, _setting(row) == last_settings[_figure(row)]
        )
        for reference, row in rows.items()
    )
    return build("aws_neuron_training", len(rows), source_rows, shared={"stack": "aws/neuron"})


def _lines(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    with file.open(encoding="utf-8", newline="") as stream:
        for line, row in enumerate(csv.DictReader(stream), start=2):
            yield line, {name.strip(): (text or "").strip() for name, text in row.items() if name}


def _figure(row: dict[str, str]) -> tuple[str, ...]:
    """Return the key of a measured figure."""
    return _model(row), _n_node(row), _precision(row), row["Performance [seq/sec]"]


def _setting(row: dict[str, str]) -> tuple[str, ...]:
    return row["Topology"], _global_batch(row), row["Microbatch"]


def _model(row: dict[str, str]) -> str:
    return row["Model"].replace("GTP3", "GPT3")


def _n_node(row: dict[str, str]) -> str:
    return row.get("Nodes") or row.get("# Nodes", "")


def _precision(row: dict[str, str]) -> str:
    return (row.get("Training Data-Type") or row.get("Precision", "")).removeprefix("Autocast:")


def _global_batch(row: dict[str, str]) -> str:
    return row.get("Globalbatch") or row.get("Global Minibatch", "")


def _classify(reference: str, row: dict[str, str], is_last: bool) -> SourceRow | RejectedRow:
    if _VISION.search(row["Model"]):
        return RejectedRow(reference, "unknown_model", f"{row['Model']}: no language model")
    if not is_last:
        return RejectedRow(reference, "superseded", "the same figure stands later under another batch or topology")
    return SourceRow(reference, _cells(row))


def _cells(row: dict[str, str]) -> Cells:
    model, topology, precision = _model(row), row["Topology"], _precision(row)
    nodes, rate = number(_n_node(row)), number(row["Performance [seq/sec]"])
    length = _by_word(PHASES, model) or number(row.get("Sequence Length")) or _by_word(LENGTHS, model)
    sizes, micro = _chips(_cores(topology), number(row["Microbatch"]))
    return {
        "model": _PURPOSE.sub("", model), "method": "full" if "tuning" in model.casefold() else "pretrain",
        "accelerator": "aws-trainium1", "n_accelerator": nodes * _CHIPS_PER_NODE if nodes else None, "n_node": nodes,
        "framework": "neuronx", "framework_version": row.get("Neuron Version", ""), "date": row["_measured"],
        "compute_precision": "fp32" if precision == "FP32" else "bf16", "precision_recipe": _recipe(precision),
        "n_token_per_sequence": length, "sharding": "zero1" if "ZeRO-1" in topology else "",
        "optimizer": row.get("Optimizer", "").casefold(), "n_micro_batch_sequence": micro,
        "n_global_batch_sequence": number(_global_batch(row)), **sizes,
        "throughput_token_per_s": rate * length if rate and length else None,
        "note": (
            f"{topology} and a micro batch of {row['Microbatch']} in NeuronCores, two a chip; {precision}"
            f"{_corrected(row)}"
        )[:200],
    }  # fmt: skip


def _corrected(row: dict[str, str]) -> str:
    """Return the note on a corrected setting; empty if the setting is of the figure's own day."""
    return "" if row["_first_seen"] == row["_measured"] else f"; setting as corrected on {row['_first_seen']}"


def _cores(topology: str) -> dict[str, float]:
    """Return the parallel sizes in NeuronCores; sizes not in the topology are 1."""
    sizes = {"tp": 1.0, "pp": 1.0, "dp": 1.0}
    for name, size, bracketed, bracketed_name in _SIZE.findall(topology):
        sizes[(name or bracketed_name).lower()] *= float(size or bracketed)
    return sizes


def _chips(sizes: dict[str, float], micro: float | None) -> tuple[dict[str, float], float | None]:
    """Return parallel sizes and micro batch per chip.

    Tensor parallelism over cores is halved. Without it, the two replicas of a chip count as one with twice the micro
    batch.
    """
    if sizes["tp"] > 1:
        return sizes | {"tp": sizes["tp"] / N_CORE_PER_CHIP}, micro
    return sizes | {"dp": sizes["dp"] / N_CORE_PER_CHIP}, micro and micro * N_CORE_PER_CHIP


def _by_word(lengths: Mapping[str, float], model: str) -> float | None:
    return next((length for word, length in lengths.items() if word in model), None)


def _recipe(precision: str) -> str:
    if "SR" in precision:
        return "stochastic-rounding"
    return "amp" if "amp" in precision.casefold() else ""
