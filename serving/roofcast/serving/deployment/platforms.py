"""Names of `deployment.toml`: options of engines, and platforms of accelerators."""

import hashlib
import re
import textwrap
import tomllib
from collections.abc import Iterable, Mapping
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


LONGEST_NAME: Final = 48
"""Characters of a name: a DNS label has 63, and KServe appends some."""

LONGEST_LABEL: Final = 63


def dns_name(text: str) -> str:
    """Return a DNS-1123 label that begins with a letter; a long text is cut and gets a checksum.

    References
    ----------
    RFC 1123, section 2.1; Kubernetes documentation, "Object Names and IDs".

    Examples
    --------
    >>> dns_name("Llama-3.1-8B_Instruct"), dns_name("01-ai"), dns_name("...")
    ('llama-3-1-8b-instruct', 'llm-01-ai', 'llm')
    """
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not re.match("[a-z]", name):
        name = f"llm-{name}".strip("-")
    if len(name) > LONGEST_NAME:
        checksum = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        name = f"{name[: LONGEST_NAME - 9].rstrip('-')}-{checksum}"
    return name


def label_value(text: str) -> str:
    """Return a text as a label value: letters and digits, with ``-_.`` between them.

    References
    ----------
    Kubernetes documentation, "Labels and Selectors", syntax and character set.

    Examples
    --------
    >>> label_value("Standard_ND96isr_H100_v5"), label_value("1x A100 (80 GB)")
    ('Standard_ND96isr_H100_v5', '1x-A100-80-GB')
    """
    value = re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:LONGEST_LABEL]
    return value.strip("-_.")


def check_argument(field: str, text: str) -> str:
    """Return a text unchanged if a program takes it for a value, not for an option.

    Raises `InputError` if the text begins with a dash, or holds a control character.

    Examples
    --------
    >>> check_argument("model", "--trust-remote-code")
    Traceback (most recent call last):
    ...
    roofcast.data.errors.InputError: model: must not begin with a dash, got '--trust-remote-code'
    """
    if text.startswith("-"):
        raise InputError(field, f"must not begin with a dash, got {text!r}")
    if not text.isprintable():
        raise InputError(field, f"must hold printable characters only, got {text!r}")
    return text


_WIDTH: Final = 100

FILL_IN: Final = (
    "namespace: that of `kubectl apply --namespace NAME --filename FILE`; the manifest names none",
    "token: for a checkpoint that asks for a login, `kubectl create secret generic huggingface --namespace NAME "
    "--from-literal=token=$HF_TOKEN`",
    "nodes: the labels in nodeSelector are to be those of yours",
    "weights: an emptyDir is filled again at each start; a persistent volume claim keeps them",
)
"""What a manifest leaves to its user."""


def option_notes(options: Iterable[tuple[str, ...]]) -> str:
    """Return a comment for each option whose name does not say what it is for.

    Examples
    --------
    >>> print(option_notes([("vllm", "serve", "m"), ("--tensor-parallel-size", "2")]), end="")
    # --tensor-parallel-size: accelerators that share each layer
    """
    names = load_names()
    purposes = {
        option: names["purposes"][key]
        for engine in names["options"].values()
        for key, option in engine.items()
        if key in names["purposes"]
    }
    return "".join(_comment(f"{option[0]}: {purposes[option[0]]}") for option in options if option[0] in purposes)


def manifest_notes(text: str) -> str:
    """Return the comments on what to fill in of a manifest."""
    placeholder = [f"image and labels: replace `{REPLACE}`"] if REPLACE in text else []
    return _comment("to fill in") + "".join(_comment(f"- {one}") for one in (*placeholder, *FILL_IN))


def _comment(text: str) -> str:
    lines = textwrap.wrap(
        text, _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False, break_long_words=False
    )
    return "".join(f"{line}\n" for line in lines)
