"""Kubernetes names and labels, and safe command-line values."""

import hashlib
import re
from typing import Final

from roofcast.data.errors import InputError

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
