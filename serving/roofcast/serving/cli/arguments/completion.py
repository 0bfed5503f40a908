"""Values that the shell completes: choices, and names of the catalogue's tables, which are not parsed for it."""

from __future__ import annotations

import csv
import importlib.resources
from collections.abc import Callable

from roofcast.data.measurements.target import INFERENCE, Target

Complete = Callable[[str], list[str]]
"""Returns the names that an incomplete word may become."""


def complete_from(file: str, column: str = "id", separator: str = "/") -> Complete:
    """Return the completion from a column of a catalogue table; the part of a name after the separator is a name too.

    Examples
    --------
    >>> complete_from("accelerators.csv")("nvidia-h200")
    ['nvidia-h200-nvl-141gb', 'nvidia-h200-sxm-141gb']
    >>> complete_from("offers.csv", "provider")("a")
    ['aws', 'azure']
    """

    def complete(incomplete: str) -> list[str]:
        text = importlib.resources.files("roofcast.data.catalog").joinpath(file).read_text(encoding="utf-8")
        names = {row[column] for row in csv.DictReader(text.splitlines())}
        return complete_names(*names, *(name.partition(separator)[2] for name in names))(incomplete)

    return complete


def complete_names(*names: str) -> Complete:
    """Return the completion of names; blank ones are none."""
    return lambda incomplete: sorted({name for name in names if name and name.startswith(incomplete)})


def complete_column(name: str, target: Target = INFERENCE) -> Complete:
    """Return the completion from the choices of a column of measurements.

    Examples
    --------
    >>> complete_column("statistic")("p9"), complete_column("sharding", "training")("zero")
    (['p90', 'p95', 'p99'], ['zero1', 'zero2', 'zero3'])
    """

    def complete(incomplete: str) -> list[str]:
        from roofcast.data.measurements.job_schema import TRAINING_CONFIG_COLUMNS  # noqa: PLC0415
        from roofcast.data.measurements.schema import INPUT_COLUMNS  # noqa: PLC0415  (most commands complete nothing)

        columns = INPUT_COLUMNS if target == INFERENCE else TRAINING_CONFIG_COLUMNS
        return complete_names(*columns[name].choices)(incomplete)

    return complete


def complete_engine(incomplete: str) -> list[str]:
    """Return the known engines that an incomplete word may become."""
    from roofcast.features.columns import ENGINES  # noqa: PLC0415  (see `complete_column`)

    return complete_names(*ENGINES)(incomplete)


complete_model = complete_from("models.csv")
complete_accelerator = complete_from("accelerators.csv", separator="-")
complete_vendor = complete_from("accelerators.csv", "vendor")
complete_provider = complete_from("offers.csv", "provider")
complete_region = complete_from("offers.csv", "region")
complete_pricing = complete_from("offers.csv", "pricing")
