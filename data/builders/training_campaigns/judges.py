"""Published times of Megatron-LM on A100, which no training reads: they judge the training predictor alone."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.training_campaigns.duplicates import EXACT_RTOL
from builders.training_campaigns.source_rows import NODE_SIZE, Cells, RejectedRow, SourceRow, build

FOLDER: Final = "training_2026_11/raw/rapid_llm_validation"
MEGATRON: Final = "A100_train.csv"
UCI: Final = "uci_train.csv"

MODELS: Final = {
    "GPT 22B": "nvidia/gpt3-22b", "GPT 175B": "openai/gpt3-175b", "GPT 310B": "nvidia/gpt-310b",
    "GPT 530B": "nvidia/mt-nlg-530b", "GPT 1T": "nvidia/gpt-1t",
}  # fmt: skip

_TABLES: Final = {
    "A100_korthi": ("2022-05-10", "Korthikanti et al. 2022, table 5"),
    "A100_selene": ("2021-04-09", "Narayanan et al. 2021, table 1"),
}
_INTERLEAVED: Final = {"GPT 175B": 3.0, "GPT 530B": 3.0}
"""Model chunks of a stage in Korthikanti's runs, from table 3 of the paper."""


def build_megatron_papers(root: Path) -> BuildResult:
    """Build the judge from the files under `root`.

    The other file's four A100 are of unknown form, and neither precision nor recomputation is stated.
    """
    rows: list[SourceRow | RejectedRow] = []
    for name in (MEGATRON, UCI):
        with (root / FOLDER / name).open(encoding="utf-8", newline="") as stream:
            for line, row in enumerate(csv.DictReader(stream), start=2):
                reference = f"{name}:{line}"
                if name == UCI:
                    detail = "four A100 of unknown form; precision and recomputation not stated"
                    rows.append(RejectedRow(reference, "settings_not_stated", detail))
                else:
                    rows.append(SourceRow(reference, _cells(row)))
    shared = {"stack": "nvidia/megatron-papers", NODE_SIZE: 8.0}
    return build("megatron_papers", len(rows), rows, EXACT_RTOL, shared=shared)


def _cells(row: dict[str, str]) -> Cells:
    batch, passes, dp, tp, pp, cp = (float(row[name]) for name in ("batch", "mb", "dp", "tp", "pp", "cp"))
    date, note = _TABLES[row["device"]]
    chunks = _INTERLEAVED.get(row["model"]) if row["device"] == "A100_korthi" else None
    return {
        "model": MODELS[row["model"]], "accelerator": "nvidia-a100-sxm-80gb", "n_accelerator": dp * tp * pp * cp,
        "framework": "megatron-lm", "method": "pretrain", "compute_precision": "fp16", "tp": tp, "pp": pp, "cp": cp,
        "dp": dp, "vp": chunks, "pipeline_schedule": "interleaved" if chunks else "",
        "sequence_parallel": "on" if row["tp_sp"] == "True" else "off", "recomputation": row["recomputation"],
        "n_global_batch_sequence": batch, "n_gradient_accumulation": passes, "flash_attention": "off",
        "n_micro_batch_sequence": batch / dp / passes, "n_token_per_sequence": 2048.0, "optimizer": "adam",
        "network": "infiniband", "packing": "packed", "offload": "none", "step_time_s": float(row["actual"]),
        "date": date, "note": note,
    }  # fmt: skip
