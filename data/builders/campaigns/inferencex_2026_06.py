"""True lengths of InferenceX's nightly, and the rows of a rerun by the importer of its files."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builders.campaigns.silicon.scripts import Launch, Served
from builders.figures import number_of
from builders.published import Cells, Record
from builders.recipe import Row
from roofcast.data.errors import SchemaError
from roofcast.data.importers import read_measurements
from roofcast.data.importers.inferencemax import (
    LENGTH_VARIATION,
    MEAN_LENGTH_RATIO,
    REQUESTS_PER_SLOT,
    streams_tokens,
)

NAME: Final = "inferencex_2026_06"
ACCELERATOR: Final = "nvidia-h200-sxm-141gb"

RERUNS: Final[dict[str, Row]] = {
    "results__gptoss_h200_vllm22.0": {
        "model": "openai/gpt-oss-120b", "engine": "vllm", "engine_version": "0.22.0", "weight_precision": "fp4",
    },
    "results__deepseekr1_h200_sglang5.12": {
        "model": "deepseek-ai/DeepSeek-R1", "engine": "sglang", "engine_version": "0.5.12", "weight_precision": "fp8",
    },
}  # fmt: skip
"""Deployment by the beginning of a rerun's file name."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the nightly's records with lengths and requests; those of the rerun with their file."""
    for record in published:
        cells, name = record.cells, record.cells["@file"].rpartition("__")[2]
        if "Framework" not in cells:
            yield Record(name, {"file": cells["@source"]})
            continue
        unseen = [n for n in cells if " ITL " in n and not streams_tokens(cells["Framework"], ACCELERATOR)]
        more = {
            "n_input": MEAN_LENGTH_RATIO * number_of(cells["ISL"]),
            "n_output": MEAN_LENGTH_RATIO * number_of(cells["OSL"]),
            "n_request": REQUESTS_PER_SLOT * number_of(cells["Concurrency"]), "length_variation": LENGTH_VARIATION,
        }  # fmt: skip
        yield Record(
            f"{name}, row {cells['@row']}", {**cells, **more, **_settings(cells), **dict.fromkeys(unseen, "")}
        )


def _settings(cells: Cells) -> dict[str, object]:
    family = "gpt-oss" if "gpt-oss" in cells["Model"] else "deepseek"
    served = Served(family, "h200", cells["Framework"], cells["Precision"].lower(), cells["Date"])
    n_input, n_output, n_stream, n = (int(number_of(cells[name])) for name in ("ISL", "OSL", "Concurrency", "TP"))
    return dict(served.settings(Launch(n_input, n_output, n_stream, n, has_dp=False)) or {})


def rows(cells: Cells, _common: Row) -> list[Row] | None:
    """Return the rows of a rerun's file; None of a row of the nightly."""
    if "file" not in cells:
        return None
    file: Path = cells["file"]
    deployment = next((row for start, row in RERUNS.items() if file.name.startswith(start)), None)
    match = re.search(r"_tp(\d)_", file.name)
    if deployment is None or match is None:
        raise SchemaError("", "must be named after its deployment", file.name)
    n = int(match[1])
    overrides = {**deployment, "accelerator": ACCELERATOR, "n_accelerator": n, "tp": n, "n_node": 1}
    table = read_measurements("vllm_bench", [file], NAME, overrides=overrides)
    if not streams_tokens(str(deployment["engine"]), ACCELERATOR):
        table["itl_s"] = float("nan")
    table = table.assign(stack="heyram74/nebius", length_variation=LENGTH_VARIATION, note="")
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
