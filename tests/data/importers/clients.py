"""Sample files of benchmark clients, and functions that read and change them."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from roofcast.data.importers import read_measurements
from tests.data.row_builders import SAMPLES

SAMPLE_OVERRIDES = {"model": "ours/tiny", "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": "2"}
"""Columns that the samples leave blank."""


def sample(name: str) -> Path:
    """Return a sample, such as ``aiperf/sweep.csv``."""
    return SAMPLES / name


def rows(*files: Path, name: str | None = None, **overrides: object) -> pd.DataFrame:
    """Return the measurements of files, with `SAMPLE_OVERRIDES` and other overrides; None removes one."""
    given = {key: value for key, value in {**SAMPLE_OVERRIDES, **overrides}.items() if value is not None}
    return read_measurements(name, files, "ours", overrides=given)


def by_statistic(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of one run by their statistic."""
    assert table["statistic"].is_unique
    return table.set_index("statistic")


def with_changes(name: str, folder: Path, changes: dict[str, Any], line: int = 1) -> Path:
    """Return a copy of a sample with other values at dotted paths (``a.0.b``) of one of its lines."""
    source = sample(name)
    is_lines = source.suffix == ".jsonl"
    texts = source.read_text().splitlines() if is_lines else [source.read_text()]
    document = json.loads(texts[line - 1])
    for path, value in changes.items():
        *parents, last = path.split(".")
        node = document
        for part in parents:
            node = node[int(part)] if isinstance(node, list) else node[part]
        if value is ...:
            del node[last]
        else:
            node[int(last) if isinstance(node, list) else last] = value
    texts[line - 1] = json.dumps(document)
    file = folder / source.name
    file.write_text("\n".join(texts) + "\n")
    return file
