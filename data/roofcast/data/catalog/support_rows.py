"""Rows of the support table, and the targets that they name: which engine runs what on which accelerator."""

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Literal

from pydantic import BeforeValidator

from roofcast.data.catalog.catalog_tables import read_specs
from roofcast.data.specs import AcceleratorSpec, Source, Spec

Names = Annotated[
    tuple[str, ...], BeforeValidator(lambda cell: tuple(cell.split()) if isinstance(cell, str) else cell)
]
Status = Literal["runs", "unknown", "does_not_run"]


class SupportRow(Spec):
    """A fact about what an engine runs.

    - `engine`: In lower case, as in the measurement table. Plug-ins of vLLM are vLLM.
    - `first_version`, `last_version`: Versions for which the fact holds; blank without a bound.
    - `targets`: Targets of accelerators (``sm90``, ``gfx942``, ``gaudi3``); ``*`` matches any letters.
    - `formats`: Formats of the weights: precisions, ``awq``, ``gptq``, ``nf4``, ``gguf``, ``mlx``, ``nvfp4``,
      ``mxfp4``, and ``fp8_online`` for 16-bit weights quantised while loading. Blank for all.
    - `kv_precisions`: Precisions of the KV cache that the fact is about; blank if it is about none.
    - `models`: Kinds of models that the fact is about, as `roofcast.features.validity.engine_support.model_kinds`
      names them; blank for all.
    - `evidence`: Code counts over documentation; otherwise the newer date counts. What a source does not name
      (``absence``) counts only where nothing else is stated.
    """

    engine: str
    first_version: str = ""
    last_version: str = ""
    targets: Names
    formats: Names = ()
    kv_precisions: Names = ()
    models: Names = ()
    status: Status
    reason: str
    source: Source
    date: str
    evidence: Literal["code", "documentation", "report", "measured", "absence"]


@dataclass(frozen=True, slots=True)
class MeasuredStack:
    """A run of the store: it overrides the rows of the table that say that it is impossible.

    `formats` and `kinds`: formats of the weights and kinds of the model, of which `SupportRow` has some. `date`:
    blank if unknown: it counts as new.
    """

    engine: str
    version: str
    target: str
    formats: frozenset[str]
    kinds: frozenset[str]
    date: str


class _Target(Spec):
    vendor: str
    architecture: str = ""
    memory_type: str = ""
    id: str = ""
    target: str
    name: str
    source: Source

    @property
    def starts(self) -> tuple[str, ...]:
        return self.vendor, self.architecture, self.memory_type, self.id


@cache
def load_support() -> tuple[SupportRow, ...]:
    """Return the rows of the shipped table. Raises `SchemaError` if a row breaks the schema."""
    return tuple(read_specs(resources.files("roofcast.data.catalog") / "engine_support.csv", SupportRow))


@cache
def target_names() -> dict[str, str]:
    """Return the name in words of each target."""
    return {row.target: row.name for row in reversed(_targets())}


def target_of(accelerator: AcceleratorSpec) -> str:
    """Return what an engine is compiled for: a compute capability, an architecture or a generation; blank if unknown.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> [target_of(load_catalog().accelerator(name)) for name in ("nvidia-a100-sxm-80gb", "nvidia-a10-24gb")]
    ['sm80', 'sm86']
    """
    spec = accelerator
    return _find_target(spec.vendor, spec.architecture, spec.memory_type, spec.id)


@cache
def _find_target(*names: str) -> str:
    rows = (row for row in _targets() if all(map(str.startswith, names, row.starts)))
    return next((row.target for row in rows), "")


@cache
def _targets() -> tuple[_Target, ...]:
    return tuple(read_specs(resources.files("roofcast.data.catalog") / "accelerator_targets.csv", _Target))
