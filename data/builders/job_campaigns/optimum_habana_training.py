"""Optimum Habana: baselines of the project's tests, joined with the tests' configurations."""

import csv
import functools
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from builders.published import Record

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
    tasks = _tasks().get(re.sub(r"^(MultiCard|Deep[sS]peed)", "", test.split("::")[-2]))
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


@functools.cache
def _tasks() -> dict[str, list[str]]:
    tasks: dict[str, list[str]] = defaultdict(list)  # by test class without its prefix, of ``tests/test_examples.py``
    with Path(__file__).with_name("optimum_habana_tasks.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            tasks[row["test_class"]].append(row["task"])
    return tasks


def _argument(text: str) -> tuple[str, str]:
    name, _, value = text.strip().removeprefix("--").partition(" ")
    return name, value.strip() or "on"
