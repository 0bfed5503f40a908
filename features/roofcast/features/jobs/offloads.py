"""What frameworks keep in the memory of the host, with which sharding: the table of support, and leaner settings."""

import csv
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from roofcast.features.jobs.frameworks import FALLBACK, FRAMEWORKS, framework_family


class Offload(NamedTuple):
    """A sharding and an offload that a family of frameworks runs together.

    - `accelerators`: ``one`` or ``several`` where the sharding is chosen for so many alone; blank for any number.
    - `step`: Order in which a search tries it where it is not stated; 0 for never.
    - `loss`: Loss that goes with it where none is stated; blank for the framework's.
    """

    sharding: str
    offload: str
    accelerators: str
    step: int
    loss: str
    source: str


def _read() -> dict[str, list[Offload]]:
    text = (resources.files(__package__) / "offloads.csv").read_text(encoding="utf-8")
    by_family: dict[str, list[Offload]] = {name: [] for name in FRAMEWORKS}
    for row in csv.DictReader(text.splitlines()):
        rest = (row["offload"], row["accelerators"], int(row["step"] or 0), row["loss"], row["source"])
        for family in row["framework"].split():
            by_family[family] += [Offload(sharding, *rest) for sharding in row["sharding"].split()]
    return by_family


OFFLOADS: Final = _read()
"""Rows of ``offloads.csv`` by family of frameworks. All run without offload. Those of `FALLBACK` with a stage of ZeRO
are run by DeepSpeed."""


def offload_problem(framework: str, sharding: str, offload: str, *, is_one: bool) -> str:
    """Return why a framework does not run an offload with a sharding, and the nearest that runs; blank if it does.

    `sharding` is blank if it is not stated; `is_one`: whether the run has one accelerator.

    Examples
    --------
    >>> offload_problem("llama-factory", "zero2", "optimizer", is_one=False)
    ''
    >>> offload_problem("deepspeed", "zero2", "parameters", is_one=False).partition(" (")[0]
    'deepspeed with zero2 has no offload of parameters; nearest that runs: deepspeed with zero3 and parameters'
    """
    if offload in {"", "none"}:
        return ""
    rows = _rows(framework_family(framework, sharding), sharding, is_one=is_one)
    if any(row.offload == offload for row in rows):
        return ""
    others = [(framework, row) for row in _rows(framework_family(framework, sharding), "", is_one=is_one)]
    others = [(name, row) for name, row in others if row.offload != "none"]
    others = others or [(FALLBACK, row) for row in _rows(FALLBACK, "", is_one=is_one) if row.offload != "none"]
    name, row = min(others, key=lambda one: (one[1].offload != offload, one[1].sharding != sharding))
    stated = f"{framework} with {sharding}" if sharding else framework
    nearest = f"{name} with {row.sharding} and {row.offload} ({row.source})"
    return f"{stated} has no offload of {offload}; nearest that runs: {nearest}"


def _rows(family: str, sharding: str, *, is_one: bool) -> list[Offload]:
    if sharding:
        return [row for row in OFFLOADS[family] if row.sharding == sharding]
    return [row for row in OFFLOADS[family] if row.accelerators != ("several" if is_one else "one")]


@cache
def leaner_settings(
    family: str, sharding: str, offload: str, *, is_one: bool, has_offload: bool
) -> tuple[tuple[str, str, str], ...]:
    """Return what blanks of sharding, offload and loss may become: the framework's convention, then leaner settings.

    - `sharding`, `offload`: As stated; blank if not.
    - `has_offload`: Whether the host may hold what the convention leaves on the device.

    Returns
    -------
    settings
        Sharding, offload and loss, each blank for the convention.

    Examples
    --------
    >>> leaner_settings("transformers", "", "", is_one=False, has_offload=False)
    (('', '', ''), ('fsdp', 'none', ''))
    >>> leaner_settings("torchtitan", "", "", is_one=False, has_offload=True)
    (('', '', ''), ('fsdp', 'parameters', ''))
    >>> leaner_settings("fsdp", "", "activations", is_one=True, has_offload=True)
    (('fsdp', 'activations', ''),)
    """
    usual = FRAMEWORKS[family]
    rows = [row for row in _rows(family, sharding, is_one=is_one) if row.offload == (offload or row.offload)]
    base = sharding or ("ddp" if is_one else usual.sharding)
    kept = {usual.offload, "none"}
    leaner = [row for row in rows if row.step and (offload or has_offload or row.offload in kept)]
    found = [(row.sharding, row.offload, row.loss) for row in sorted(leaner, key=lambda row: row.step)]
    is_unsupported = offload not in {"", "none"} and all(row.sharding != base for row in rows)
    if is_unsupported and rows and not sharding:
        return tuple(found) or ((rows[0].sharding, offload, rows[0].loss),)
    return ("", "", ""), *(one for one in found if one[:2] != (base, offload or usual.offload))
