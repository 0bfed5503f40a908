"""Names of `deployment.toml`: options of engines, and platforms of accelerators."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from roofcast.data.errors import InputError
from roofcast.data.specs import AcceleratorSpec

REPLACE: Final = "replace-me"
"""Placeholder for the user to replace."""


@dataclass(frozen=True, slots=True)
class Platform:
    """Platform of a family of accelerators.

    - `accelerators`: Vendors, vendors with an architecture, or ids.
    - `resource`: Kubernetes resource; one unit is one accelerator.
    - `images`: Container image by engine; of the engines with artefacts.
    - `n_device`: Devices of tensor parallelism per accelerator.
    - `fp8_cache`: Name of the FP8 cache in vLLM.
    """

    accelerators: tuple[str, ...]
    resource: str
    images: Mapping[str, str]
    n_device: int = 1
    fp8_cache: str = "fp8"


@cache
def load_names() -> dict[str, Any]:
    """Return the tables of names."""
    return tomllib.loads(Path(__file__).with_name("deployment.toml").read_text(encoding="utf-8"))


def platform_of(accelerator: AcceleratorSpec) -> Platform:
    """Return the platform of an accelerator.

    Raises `InputError` if there is none: for CPUs, accelerators of several devices to an engine, and those without a
    supported engine.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> platform_of(load_catalog().accelerator("nvidia-h100-sxm-80gb")).resource
    'nvidia.com/gpu'
    """
    vendor = accelerator.vendor
    names = {vendor, f"{vendor} {accelerator.architecture}", accelerator.id}
    for fields in load_names()["platforms"]:
        if names.intersection(fields["accelerators"]):
            return Platform(**fields)
    raise InputError("deployment", f"no platform is known for {vendor} {accelerator.name}; choose another")
