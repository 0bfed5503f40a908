"""Descriptor and feature columns: name, unit, group, meaning and monotone sign.

`DESCRIPTORS` describe one query (model, hardware, configuration, workload); `FEATURES` are the inputs of the learner.
``columns.csv`` is the only definition of their order.
"""

import csv
from dataclasses import dataclass
from importlib import resources
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    - `name`: ``group.name_unit``; the groups are model, hardware, config, workload, memory and roofline.
    - `unit`: SI unit; ``1`` for ratios, flags and codes; ``log`` and a unit for the natural logarithm of a quantity
      in that unit.
    - `meaning`: Description in one sentence.
    - `sign`: Monotone constraint: 1 or -1 if a larger value can only lengthen or shorten latencies relative to the
      estimate; 0 if there is no constraint.
    - `is_analytic`: Whether the estimate alone reads it, so that bundles fitted before it was added are still valid.
    """

    name: str
    unit: str
    meaning: str
    sign: Literal[-1, 0, 1] = 0
    is_analytic: bool = False


def _columns(table: str) -> tuple[Column, ...]:
    text = (resources.files(__package__) / "columns.csv").read_text(encoding="utf-8")
    signs: dict[str, Literal[-1, 0, 1]] = {"": 0, "1": 1, "-1": -1}
    return tuple(
        Column(row["name"], row["unit"], row["meaning"], signs[row["sign"]], bool(row["is_analytic"]))
        for row in csv.DictReader(text.splitlines())
        if row["table"] == table
    )


DESCRIPTORS: Final = _columns("descriptor")
FEATURES: Final = _columns("feature")

ENGINES: Final = (
    "vllm", "sglang", "trtllm", "tgi", "tgis", "lmdeploy", "turbomind", "llama.cpp", "deepspeed", "deepspeed-mii",
    "mlc-llm", "fastertransformer", "transformers-neuronx", "optimum-habana", "transformers", "other",
)  # fmt: skip
"""Engines with coefficients of their own if they were measured; ``other`` has the typical coefficients."""

DESCRIPTOR_NAMES: Final = tuple(column.name for column in DESCRIPTORS)
MODEL_NAMES: Final = tuple(name for name in DESCRIPTOR_NAMES if name.startswith("model."))
FEATURE_NAMES: Final = tuple(column.name for column in FEATURES)
