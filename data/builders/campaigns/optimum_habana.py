"""Baselines by test and accelerator: the test's name holds kind, model, accelerators, batch and lengths."""

import re
from collections.abc import Iterator
from typing import Final

from builders.published import Record

_TEST: Final = re.compile(
    r"test_text_generation_(?P<kind>fp8|awq|gptq)\[(?P<model>.+?)-(?P<n_accelerator>\d+)-(?P<batch>\d+)-"
    r"(?:True|False)-(?P<n_input>\d+)-(?P<n_output>\d+)(?:-\w+)?\]"
)
"""The first flag is cache reuse; the last does not affect the run."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each test and accelerator."""
    for document in published:
        for test, results in document.columns.items():
            name = test.partition("::")[2]
            match = _TEST.match(name)
            run = {**match.groupdict(), "run": match.groups()} if match else {}
            for accelerator, result in results.items():
                is_copy = accelerator == "gaudi3" and result == results.get("gaudi2")
                cells = {**result, **run, "accelerator": accelerator, "is_copy": is_copy}
                yield Record(f"{name} {accelerator}", cells)
