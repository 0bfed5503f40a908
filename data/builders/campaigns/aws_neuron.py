"""AWS Neuron's benchmark pages: decoders on Inferentia2 and Trainium, static batches."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of, records_of, rows_by_statistic
from roofcast.data.units import s_from_ms

RAW: Final = Path("raw") / "aws_neuron"
FILES: Final = tuple(
    f"union_{chip}_{table}_data_{kind}.csv"
    for chip in ("inf2", "trn1")
    for kind in ("decoder", "encoder_decoder")
    for table in ("latency", "throughput")
)
"""Each file holds the rows of all revisions of a page's table; files without ``union_`` hold only the last."""

MODELS: Final = {
    "Llama-2-7b": "meta-llama/Llama-2-7b-hf",
    "Llama-2-13b": "meta-llama/Llama-2-13b-hf",
    "Llama-2-70b": "meta-llama/Llama-2-70b-hf",
    "Llama-3-8B": "meta-llama/Meta-Llama-3-8B",
    "Llama-3-70B": "meta-llama/Meta-Llama-3-70B",
    "Mistral-7B-Instruct-v0.2": "mistralai/Mistral-7B-v0.2",
    "CodeLlama-13b-hf": "codellama/CodeLlama-13b-hf",
}
ACCELERATORS: Final = {
    "Inf2.24xlarge": "aws-inferentia2", "Inf2.48xlarge": "aws-inferentia2", "trn1.32xlarge": "aws-trainium1",
}  # fmt: skip
"""Accelerator by instance type."""

N_CORE_PER_CHIP: Final = 2
"""NeuronCores per Inferentia2 or Trainium chip; the source counts tensor parallelism in cores."""

_KEY_COLUMNS: Final = (
    "Model",
    "Inst. Type",
    "Neuron Version",
    "Batch Size",
    "Input Length",
    "Output Length",
    "TP Degree",
)
_TTFT: Final = "TTFT Latency P50 (ms)"
_TPOT: Final = "TPOT Latency P50 (ms)"
_THROUGHPUT: Final = "Output Token Throughput (tokens/sec)"


def build_aws_neuron(root: Path) -> BuildResult:
    """Build the campaign from its tables under `root`.

    Raises
    ------
    SchemaError
        If a file is missing.
    """
    builder = CampaignBuilder("aws_neuron", MODELS, ACCELERATORS)
    for name in FILES:
        for reference, cells in records_of(root / RAW / name):
            run = tuple(cells[column] for column in (*_KEY_COLUMNS, _THROUGHPUT) if column in cells)
            if not cells.get(_TPOT):
                detail = "latency per token over prompt and output together, without a definition"
                builder.reject(reference, "latency_undefined", detail)
            elif not builder.is_new(*run):
                builder.reject(reference, "repeats_other_table", "stands in an earlier table")
            else:
                builder.add(reference, _rows(cells))
    return builder.build()


def _rows(cells: dict[str, str]) -> list[Row]:
    n_chip = int(number_of(cells["TP Degree"])) / N_CORE_PER_CHIP
    weights = cells["Weight Storage Data Type"].lower() or cells["Model Data Type"].lower()
    common: Row = {
        "model": cells["Model"], "accelerator": cells["Inst. Type"], "n_accelerator": n_chip, "tp": n_chip, "pp": 1,
        "engine": "transformers-neuronx", "engine_version": cells["Neuron Version"], "n_node": 1,
        "weight_precision": weights, "activation_precision": "bf16", "load": "static_batch",
        "length_variation": 0.0,
        "n_input_token": number_of(cells["Input Length"]), "n_output_token": number_of(cells["Output Length"]),
        "concurrency": number_of(cells["Batch Size"]), "date": cells["_first_seen"],
        "software": f"{cells['Framework']}, Neuron {cells['Neuron Version']}",
        "note": f"{cells['Inst. Type']}, {cells['Application Type']}; {cells['TP Degree']} NeuronCores",
    }  # fmt: skip
    outcomes: dict[str, Row] = {
        "mean": {"output_throughput_token_per_s": number_of(cells[_THROUGHPUT])},
        "p50": _latencies(cells, "P50"),
        "p99": _latencies(cells, "P99"),
    }
    return rows_by_statistic(common, outcomes)


def _latencies(cells: dict[str, str], statistic: str) -> Row:
    columns = {"ttft_s": _TTFT, "tpot_s": _TPOT}
    return {ours: s_from_ms(number_of(cells[theirs.replace("P50", statistic)])) for ours, theirs in columns.items()}
