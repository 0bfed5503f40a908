"""Files of accelerators and prices that a user writes."""

import re
from pathlib import Path

from roofcast.data.catalog.accelerator_file import accelerator_template

ID = "acme-x1-96gb"
"""Id of the accelerator that the template describes."""

OFFER_HEADER = "provider,instance_type,accelerator,price_per_h,as_of"


def an_accelerator_file(**changes: str | float) -> str:
    """Return the template with changed values."""
    text = accelerator_template()
    for field, value in changes.items():
        literal = f'"{value}"' if isinstance(value, str) else str(value)
        text, n = re.subn(rf"(?m)^{field} = [^#\n]*", f"{field} = {literal} ", text)
        assert n == 1, field
    return text


def an_offer_file(*rows: str) -> str:
    """Return a CSV of offers; without rows, of one offer of the template's accelerator."""
    return "\n".join((OFFER_HEADER, *(rows or (f"attic,box,{ID},1.5,2026-11-01",)))) + "\n"


def write_file(home: Path, name: str, text: str) -> Path:
    """Write a file under a folder, and return it."""
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
