"""Optimum Habana: baselines of the project's tests, joined with the tests' configurations."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from builders.published import Record

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

_SCRIPTS: Final = "run_prompt_tuning_clm|run_lora_clm|run_clm|run_mlm|run_glue|run_qa|run_summarization|sft"
_TEST: Final = re.compile(
    rf"test_(?P<script>{_SCRIPTS})_(?P<name>[\w.-]+?)_(?P<spread>single_card|multi_card|deepspeed)"
)


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the records with the test's batch and arguments (a flag is ``on``)."""
    for record in published:
        cells = record.cells
        yield record.having(**_setting(cells["@source"].parent, cells["test"], cells["part"]))


def _setting(folder: Path, test: str, part: str) -> dict[str, Any]:
    match = _TEST.fullmatch(test.rpartition("::")[2])
    tasks = TASKS.get(re.sub(r"^(MultiCard|Deep[sS]peed)", "", test.split("::")[-2]), ())
    if match is None or not tasks:
        return {}
    file = folder / f"configs_examples_{re.sub('[.-]', '_', match['name'])}.json"
    by_task = json.loads(file.read_text(encoding="utf-8")).get(part, {}) if file.is_file() else {}
    for task in tasks:
        setting = by_task.get(task, {"distribution": {}})["distribution"].get(match["spread"])
        if setting:
            arguments = dict(_argument(text) for text in setting["extra_arguments"])
            label = arguments.get("peft_type", task)
            return {**match.groupdict(), **arguments, "label": label, "batch": setting["train_batch_size"]}
    return match.groupdict()


def _argument(text: str) -> tuple[str, str]:
    name, _, value = text.strip().removeprefix("--").partition(" ")
    return name, value.strip() or "on"
