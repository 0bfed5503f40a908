"""Optimum Habana: fine-tuning and LoRA on Gaudi 2 and 3, by the baselines of the project's tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from builders.campaigns.build_result import BuildResult
from builders.training_campaigns.duplicates import EXACT_RTOL
from builders.training_campaigns.source_rows import Cells, RejectedRow, SourceRow, build
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
"""Class of a test, without what says how it is spread, to its task, as ``tests/test_examples.py`` has it."""

PADDED: Final = ("run_glue", "run_qa", "run_prompt_tuning_clm")
LENGTHS: Final = {"run_clm": 1024, "run_mlm": 512, "run_lora_clm": 512}
"""Script to the length of its packed sequences where no argument gives another: their own defaults."""

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
    """Return the campaign built from the files under `root`.

    A baseline is the figure of one run, which later runs are compared with; the test's own configuration gives batch,
    length and method. The step time is the global batch over the samples per second.
    """
    folder = root / RAW
    found = [item for name in BASELINES for item in _found(folder, name)]
    return build("optimum_habana_training", len(found), found, EXACT_RTOL)


def _found(folder: Path, name: str) -> Iterator[SourceRow | RejectedRow]:
    for test, by_part in _read(folder / f"baselines_fixture_tests_{name}.json").items():
        for part, measured in by_part.items():
            if "train_samples_per_second" in measured:
                reference = f"{test.partition('::')[2] or test} {part}"
                yield _one(folder, reference, test, part, by_part)


def _one(
    folder: Path, reference: str, test: str, part: str, by_part: Mapping[str, Mapping[str, float]]
) -> SourceRow | RejectedRow:
    named = _TEST.fullmatch(test.rpartition("::")[2])
    tasks = TASKS.get(re.sub(r"^(MultiCard|Deep[sS]peed)", "", test.split("::")[-2]), ())
    if part == "gaudi3" and by_part[part].items() <= by_part.get("gaudi2", {}).items():
        return RejectedRow(reference, "copied_baseline", "the figures are Gaudi 2's to the last digit")
    if "Tester" not in test:
        return RejectedRow(
            reference, "unknown_accelerator", "the test's name does not say over how many cards it runs"
        )
    if named is None or not tasks:
        return RejectedRow(
            reference, "not_training", "images, sound, proteins, or samples that are no plain sequences"
        )
    setting = _setting(folder, named, part, tasks)
    if setting is None:
        return RejectedRow(reference, "no_configuration", "the collected configurations hold none of this test")
    return SourceRow(reference, _cells(named, part, by_part[part], setting))


def _setting(folder: Path, named: re.Match[str], part: str, tasks: tuple[str, ...]) -> Mapping[str, Any] | None:
    file = folder / f"configs_examples_{re.sub('[.-]', '_', named['model'])}.json"
    by_task = _read(file).get(part, {}) if file.is_file() else {}
    spreads = ((task, by_task[task]["distribution"]) for task in tasks if task in by_task)
    return next(
        (spread[named["spread"]] | {"task": task} for task, spread in spreads if named["spread"] in spread), None
    )


def _cells(named: re.Match[str], part: str, measured: Mapping[str, float], setting: Mapping[str, Any]) -> Cells:
    given = dict(_argument(text) for text in setting["extra_arguments"])
    n_card, n_micro = _N_CARD[named["spread"]], float(setting["train_batch_size"])
    n_gradient, rate = float(given.get("gradient_accumulation_steps", 1)), measured["train_samples_per_second"]
    cp = float(given.get("context_parallel_size", 1))
    n_batch = n_micro * n_gradient * n_card if cp == 1.0 else None
    length = _length(named["script"], given)
    method, rank = _method(named["script"], given)
    return {
        "model": _MODELS.get(named["model"], named["model"]), "accelerator": _PARTS[part], "n_accelerator": n_card,
        "framework": "optimum-habana", "method": method, "adapter_rank": rank,
        "compute_precision": "fp8" if "fp8" in given else "bf16" if "bf16" in given else "",
        "sharding": _sharding(named["spread"], given), "cp": cp if cp > 1.0 else None,
        "recomputation": "full" if "gradient_checkpointing" in given else "none",
        "n_micro_batch_sequence": n_micro, "n_global_batch_sequence": n_batch, "n_gradient_accumulation": n_gradient,
        "n_token_per_sequence": length,
        "packing": "" if length is None else "padded" if named["script"] in PADDED else "packed",
        "throughput_token_per_s": rate * length if length else None,
        "step_time_s": float(f"{n_batch / rate:.6g}") if n_batch and not length else None,
        "duration_s": measured.get("train_runtime"),
        "note": f"{named['script']}, {given.get('peft_type') or setting['task']}; rate without the first three steps",
    }  # fmt: skip


def _argument(text: str) -> tuple[str, str]:
    name, _, value = text.strip().removeprefix("--").partition(" ")
    return name, value.strip()


def _length(script: str, given: Mapping[str, str]) -> float | None:
    """Return the length to which sequences are padded or packed; None where neither is said."""
    stated = given.get("max_seq_length") or given.get("block_size")
    packs = script in {"run_clm", "run_mlm"} or "dataset_concatenation" in given or given.get("packing") == "True"
    if script in PADDED or packs:
        return float(stated or LENGTHS[script])
    return None


def _method(script: str, given: Mapping[str, str]) -> tuple[str, float | None]:
    rank = given.get("lora_rank") or given.get("lora_r")
    if given.get("peft_type") or "prompt" in script:
        return "adapter", None
    if script == "run_lora_clm" or (script == "sft" and given.get("use_peft") != "False"):
        return "lora", float(rank) if rank else None
    return "full", None


def _sharding(spread: str, given: Mapping[str, str]) -> str:
    if "fsdp" in given:
        return "fsdp"
    stage = _ZERO.search(Path(given.get("deepspeed", "")).name)
    return f"zero{stage[1]}" if stage else "ddp" if spread == "multi_card" else ""


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SchemaError("", f"must be a readable JSON file: {error}", file.name) from error
    if not isinstance(found, dict):
        raise SchemaError("", "must hold a JSON object", file.name)
    return found
