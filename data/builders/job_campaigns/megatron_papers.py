"""Published times of Megatron-LM on A100, which no training reads: they judge the training predictor alone.

Figures are typed from V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022,
tables 3 and 5, whose times calculon's ``validation.py`` repeats, and from D. Narayanan et al., "Efficient Large-Scale
Language Model Training on GPU Clusters Using Megatron-LM", 2021, table 1.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from builders.published import Record
from roofcast.data.job_campaigns import job_catalog
from roofcast.data.units import FLOP_PER_TFLOP

N_TOKEN: Final = 2048.0


def records(_published: Iterator[Record]) -> Iterator[Record]:
    """Yield the runs of ``megatron_papers.csv``: with full and selective recomputation, or of one rate."""
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if row["tera_flop_per_s"]:
                yield Record(f"narayanan:{row['model']}", {**row, "recomputation": "full", "step": _step_s(row)})
            for kind in ("full", "selective") if row["full_s"] else ():
                run = {**row, "recomputation": kind, "step": row[f"{kind}_s"]}
                yield Record(f"korthikanti:{row['model']}:{kind}", run)


def _step_s(row: Mapping[str, str]) -> float:
    spec, batch = job_catalog().model(row["model"]), float(row["batch"])
    width, n_layer, vocabulary = spec.hidden_size, spec.n_layer, spec.vocab_size
    ratio = 1 + N_TOKEN / (6 * width) + vocabulary / (16 * n_layer * width)
    flop = 96 * batch * N_TOKEN * n_layer * width**2 * ratio
    return round(flop / (float(row["n_accelerator"]) * float(row["tera_flop_per_s"]) * FLOP_PER_TFLOP), 3)
