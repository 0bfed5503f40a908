"""Optimum Habana: fine-tuning and LoRA on Gaudi 2 and 3, by the baselines of the project's tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from builders.campaigns.build_result import BuildResult
from builders.job_campaigns.duplicates import EXACT_RTOL
from builders.job_campaigns.source_rows import NODE_SIZE, Cells, RejectedRow, SourceRow, build
from roofcast.data.errors import SchemaError

RAW: Final = "raw/optimum_habana"
BASELINES: Final = ("test_examples", "test_fp8_examples", "test_fsdp_examples")

TASKS: Final[Mapping[str, tuple[str, ...]]] = {
    "CausalLanguageModelingExampleTester": ("wikitext",), "MaskedLanguageModelingExampleTester": ("wikitext",),
    "EagerModeCausalLanguageModelingExampleTester": ("wikitext",), "TextClassificationExampleTester": ("mrpc",),
    "QuestionAnsweringExampleTester": ("squad",), "SummarizationExampleTester": ("cnn_dailymail",),
    "CausalLanguageModelingLORAExampleTester": (
        "databricks/databricks-dolly-15k", "tatsu-lab/alpaca", "timdettmers/openassistant-guanaco",
    ),
    "CausalLanguageModelingLORAExampleTester2": ("mamamiya405/finred",),
    "CausalLanguageModelingLORAFSDPCompileExampleTester": ("tatsu-lab/alpaca_fsdpcompile",),
    "CausalLanguageModelingLoRACPExampleTester": ("tatsu-lab/alpaca_cp",),
    "CausalLanguageModelingLoRAFP8ExampleTester": ("tatsu-lab/alpaca_fp8",),
    "CausalLanguageModelingLlamaAdapterExampleTester": ("llama-adapter",),
    "CausalLanguageModelingLnExampleTester": ("ln_tuning",), "CausalLanguageModelingIA3ExampleTester": ("ia3",),
    "CausalLanguageModelingAdaloraExampleTester": ("adalora",), "CausalLanguageModelingVeraExampleTester": ("vera",),
    "CausalLanguageModelingPTuningExampleTester": ("p-tuning",),
    "CausalLanguageModelingPrefixTuningExampleTester": ("prefix-tuning",),
    "CausalLanguageModelingPromptTuningExampleTester": ("prompt-tuning",),
    "SFTExampleTester": ("trl-sft", "trl-sft-qwen"), "SFTChatExampleTester": ("trl-sft-chat",),
    "SFTChatPeftExampleTester": ("trl-sft-chat-peft",), "SFTMixtralExampleTester": ("trl-sft-mixtral",),
}  # fmt: skip
"""Tasks by test class without its distribution prefix, from ``tests/test_examples.py``."""

PADDED: Final = ("run_glue", "run_qa", "run_prompt_tuning_clm")
LENGTHS: Final = {"run_clm": 1024, "run_mlm": 512, "run_lora_clm": 512}
"""Default length of packed sequences by script."""

_MODELS: Final = {
    "gemma-2b-it": "google/gemma-2b", "CodeLlama-13b-Instruct-hf": "codellama/CodeLlama-13b-hf",
    "LlamaGuard-7b": "meta-llama/Llama-2-7b-hf", "chatglm3-6b": "zai-org/chatglm3-6b",
    "gpt2-xl": "openai-community/gpt2-xl", "falcon-40b": "tiiuae/falcon-40b",
    "roberta-large": "FacebookAI/roberta-large",
    "bert-large-uncased-whole-word-masking": "google-bert/bert-large-uncased",
}  # fmt: skip
_PARTS: Final = {"gaudi1": "Gaudi 1", "gaudi2": "intel-gaudi2-96gb", "gaudi3": "intel-gaudi3-128gb"}
_SCRIPTS: Final = "run_prompt_tuning_clm|run_lora_clm|run_clm|run_mlm|run_glue|run_qa|run_summarization|sft"
_TEST: Final = re.compile(
    rf"test_(?P<script>{_SCRIPTS})_(?P<model>[\w.-]+?)_(?P<spread>single_card|multi_card|deepspeed)"
)
_ZERO: Final = re.compile(r"(?:zero_?|z)(\d)")
_N_CARD: Final = {"single_card": 1.0, "multi_card": 8.0, "deepspeed": 8.0}


def build_habana(root: Path) -> BuildResult:
    """Build the campaign from the files under `root`.

    A baseline is the figure of one run, with which later runs are compared; the test's configuration gives batch,
    length and method. Step time = global batch / samples per second.
    """
    folder = root / RAW
    rows = [item for name in BASELINES for item in _read_rows(folder, name)]
    return build(
        "optimum_habana_training",
        len(rows),
        rows,
        EXACT_RTOL,
        shared={"stack": "huggingface/optimum-habana", NODE_SIZE: 8.0},
    )


def _read_rows(folder: Path, name: str) -> Iterator[SourceRow | RejectedRow]:
    for test, by_part in _read(folder / f"baselines_fixture_tests_{name}.json").items():
        for part, figures in by_part.items():
            if "train_samples_per_second" in figures:
                reference = f"{test.partition('::')[2] or test} {part}"
                yield _row(folder, reference, test, part, by_part)


def _row(
    folder: Path, reference: str, test: str, part: str, by_part: Mapping[str, Mapping[str, float]]
) -> SourceRow | RejectedRow:
    match = _TEST.fullmatch(test.rpartition("::")[2])
    tasks = TASKS.get(re.sub(r"^(MultiCard|Deep[sS]peed)", "", test.split("::")[-2]), ())
    if part == "gaudi3" and by_part[part].items() <= by_part.get("gaudi2", {}).items():
        return RejectedRow(reference, "copied_baseline", "the figures are Gaudi 2's to the last digit")
    if "Tester" not in test:
        return RejectedRow(
            reference, "unknown_accelerator", "the test's name does not say over how many cards it runs"
        )
    if match is None or not tasks:
        return RejectedRow(
            reference, "not_training", "images, sound, proteins, or samples that are no plain sequences"
        )
    setting = _setting(folder, match, part, tasks)
    if setting is None:
        return RejectedRow(reference, "no_configuration", "the collected configurations hold none of this test")
    cells = _cells(match, part, by_part[part], setting)
    if cells["packing"] != "packed":
        return RejectedRow(reference, "unpacked", "samples of unknown length: their tokens cannot be counted")
    return SourceRow(reference, cells)


def _setting(folder: Path, match: re.Match[str], part: str, tasks: tuple[str, ...]) -> Mapping[str, Any] | None:
    file = folder / f"configs_examples_{re.sub('[.-]', '_', match['model'])}.json"
    by_task = _read(file).get(part, {}) if file.is_file() else {}
    spreads = ((task, by_task[task]["distribution"]) for task in tasks if task in by_task)
    return next(
        (spread[match["spread"]] | {"task": task} for task, spread in spreads if match["spread"] in spread), None
    )


def _cells(match: re.Match[str], part: str, figures: Mapping[str, float], setting: Mapping[str, Any]) -> Cells:
    arguments = dict(_argument(text) for text in setting["extra_arguments"])
    n_card, n_micro = _N_CARD[match["spread"]], float(setting["train_batch_size"])
    n_gradient, rate = float(arguments.get("gradient_accumulation_steps", 1)), figures["train_samples_per_second"]
    cp = float(arguments.get("context_parallel_size", 1))
    n_batch = n_micro * n_gradient * n_card if cp == 1.0 else None
    length = _length(match["script"], arguments)
    method, rank = _method(match["script"], arguments)
    return {
        "model": _MODELS.get(match["model"], match["model"]), "accelerator": _PARTS[part], "n_accelerator": n_card,
        "framework": "optimum-habana", "method": method, "adapter_rank": rank,
        "compute_precision": "fp8" if "fp8" in arguments else "bf16" if "bf16" in arguments else "",
        "sharding": _sharding(match["spread"], arguments), "cp": cp if cp > 1.0 else None,
        "recomputation": "full" if "gradient_checkpointing" in arguments else "none",
        "n_micro_batch_sequence": n_micro, "n_global_batch_sequence": n_batch, "n_gradient_accumulation": n_gradient,
        "n_token_per_sequence": length,
        "packing": "" if length is None else "padded" if match["script"] in PADDED else "packed",
        "throughput_token_per_s": rate * length if length else None,
        "step_time_s": float(f"{n_batch / rate:.6g}") if n_batch and not length else None,
        "duration_s": figures.get("train_runtime"),
        "note": f"{match['script']}, {arguments.get('peft_type') or setting['task']}; "
        "rate without the first three steps",
    }  # fmt: skip


def _argument(text: str) -> tuple[str, str]:
    name, _, value = text.strip().removeprefix("--").partition(" ")
    return name, value.strip()


def _length(script: str, arguments: Mapping[str, str]) -> float | None:
    """Return the length to which sequences are padded or packed; None if neither is stated."""
    stated = arguments.get("max_seq_length") or arguments.get("block_size")
    packs = (
        script in {"run_clm", "run_mlm"} or "dataset_concatenation" in arguments or arguments.get("packing") == "True"
    )
    if script in PADDED or packs:
        return float(stated or LENGTHS[script])
    return None


def _method(script: str, arguments: Mapping[str, str]) -> tuple[str, float | None]:
    rank = arguments.get("lora_rank") or arguments.get("lora_r")
    if arguments.get("peft_type") or "prompt" in script:
        return "adapter", None
    if script == "run_lora_clm" or (script == "sft" and arguments.get("use_peft") != "False"):
        return "lora", float(rank) if rank else None
    return "full", None


def _sharding(spread: str, arguments: Mapping[str, str]) -> str:
    if "fsdp" in arguments:
        return "fsdp"
    stage = _ZERO.search(Path(arguments.get("deepspeed", "")).name)
    return f"zero{stage[1]}" if stage else "ddp" if spread == "multi_card" else ""


def _read(file: Path) -> dict[str, Any]:
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SchemaError("", f"must be a readable JSON file: {error}", file.name) from error
    if not isinstance(result, dict):
        raise SchemaError("", "must hold a JSON object", file.name)
    return result
