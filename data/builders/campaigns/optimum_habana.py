"""Optimum Habana's test baselines: text generation on Gaudi 2 and 3, with lengths and batch in the test names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row
from roofcast.data.errors import SchemaError

RAW: Final = Path("raw") / "optimum_habana" / "baselines_fixture_tests_test_text_generation_example.json"

MODELS: Final = {
    "TheBloke/Llama-2-7b-Chat-AWQ": "meta-llama/Llama-2-7b-hf",
    "TheBloke/Llama-2-7b-Chat-GPTQ": "meta-llama/Llama-2-7b-hf",
    "mistralai/Mistral-7B-Instruct-v0.2": "mistralai/Mistral-7B-v0.2",
}
ACCELERATORS: Final = {"gaudi1": "", "gaudi2": "intel-gaudi2-96gb", "gaudi3": "intel-gaudi3-128gb"}
PRECISIONS: Final = {"fp8": "fp8", "awq": "int4", "gptq": "int4"}

_TEST: Final = re.compile(
    r"test_text_generation_(fp8|awq|gptq)\[(.+?)-(\d+)-(\d+)-(?:True|False)-(\d+)-(\d+)(?:-\w+)?\]"
)
"""Kind, model, accelerators, batch, cache reuse, input and output length; the last flag does not affect the run."""


def build_optimum_habana(root: Path) -> BuildResult:
    """Build the campaign from its baselines under `root`.

    Raises
    ------
    SchemaError
        If the file is missing.
    """
    file = root / RAW
    if not file.is_file():
        raise SchemaError("", "no such file", file.name)
    builder = CampaignBuilder("optimum_habana", MODELS, ACCELERATORS)
    for test, results in json.loads(file.read_text(encoding="utf-8")).items():
        name = test.partition("::")[2]
        for accelerator, result in results.items():
            _add(builder, name, accelerator, result, results.get("gaudi2"))
    return builder.build()


def _add(
    builder: CampaignBuilder,
    name: str,
    accelerator: str,
    result: dict[str, float],
    gaudi2: dict[str, float] | None,
) -> None:
    reference = f"{name} {accelerator}"
    match = _TEST.match(name)
    if match is None or "throughput" not in result:
        builder.reject(reference, "no_lengths", "the test's name gives no request lengths")
    elif not builder.is_new(accelerator, *match.groups()):
        builder.reject(reference, "repeats_test", "the same run under another flag")
    elif accelerator == "gaudi3" and result == gaudi2:
        builder.reject(reference, "copied_baseline", "the figure is Gaudi 2's to the last digit")
    else:
        builder.add(reference, [_row(match.groups(), accelerator, float(result["throughput"]))])


def _row(groups: tuple[str, ...], accelerator: str, throughput_token_per_s: float) -> Row:
    kind, model, n_accelerator, batch, n_input, n_output = groups
    return {
        "model": model, "accelerator": accelerator, "n_accelerator": int(n_accelerator), "tp": int(n_accelerator),
        "pp": 1, "n_node": 1, "engine": "optimum-habana", "weight_precision": PRECISIONS[kind],
        "kv_precision": "fp8" if kind == "fp8" else "", "load": "static_batch", "concurrency": float(batch),
        "n_input_token": float(n_input), "n_output_token": float(n_output), "statistic": "mean",
        "length_variation": 0.0,
        "output_throughput_token_per_s": throughput_token_per_s, "note": f"baseline of test {kind}",
    }  # fmt: skip
